"""Callers of the broker, and what systemd does for it, for the tests of the service. The first word says which.

  restart PROGRAM STATE SOCKET NOTIFY ROUNDS   keeps the listening socket, as systemd does, through restarts under callers
  queue PROGRAM STATE SOCKET NOTIFY CALLERS    lets as many callers wait while the daemon is restarted
  notify NOTIFY SOCKET                         prints what the daemon tells systemd, and whether its door answers at READY=1
  flood SOCKET PROCESS COUNT                   takes every descriptor that the daemon has
  vanish SOCKET ROUNDS                         asks for held things and goes before the answer
"""

import json
import os
import signal
import socket
import sys
import threading
import time

GET = "GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def connected(path, patience=20):
    caller = socket.socket(socket.AF_UNIX)
    caller.settimeout(patience)
    caller.connect(path)
    return caller


def answer(caller):
    data = b""
    while part := caller.recv(65536):
        data += part
    caller.close()
    return data


def ask(path, target="/health"):
    """The body of an answer; anything else is an error."""
    caller = connected(path)
    caller.sendall(GET.format(target).encode())
    head, _, body = answer(caller).partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200") or not body:
        raise OSError(f"no answer but {head!r}")
    return json.loads(body)


class Systemd:
    """Holds the listening socket and hears what the daemon tells."""

    def __init__(self, program, state, path, notify):
        self.command = [program, "--state-dir", state]
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(4096)
        self.notify = notify
        self.heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.heard.bind(notify)
        self.heard.settimeout(20)

    def start(self):
        self.process = os.fork()
        if self.process == 0:
            # sd_listen_fds(3): the sockets begin at 3.
            os.dup2(self.listener.fileno(), 3)
            os.set_inheritable(3, True)
            os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()), NOTIFY_SOCKET=self.notify)
            os.execv(self.command[0], self.command)
        while not self.heard.recv(4096).startswith(b"READY=1"):
            pass

    def stop(self):
        os.kill(self.process, signal.SIGTERM)
        status = os.waitpid(self.process, 0)[1]
        if status != 0:
            raise OSError(f"the daemon ended with {status}")


def restart(program, state, path, notify, rounds):
    systemd = Systemd(program, state, path, notify)
    answered, lost, isOver = [], [], False

    def call():
        while not isOver:
            try:
                answered.append(ask(path))
            except (OSError, ValueError) as error:
                lost.append(repr(error))

    systemd.start()
    callers = [threading.Thread(target=call) for _ in range(8)]
    for caller in callers:
        caller.start()
    for _ in range(int(rounds)):
        time.sleep(0.1)
        systemd.stop()
        systemd.start()
    isOver = True
    for caller in callers:
        caller.join()
    systemd.stop()
    print(f"{len(answered)} answered, {len(lost)} lost {lost[:3] or ''}".strip())


def queue(program, state, path, notify, count):
    systemd = Systemd(program, state, path, notify)
    systemd.start()
    systemd.stop()
    waiting = []
    for _ in range(int(count)):
        # Non-blocking, as the clients of an event loop are: a full queue refuses them with EAGAIN.
        caller = connected(path, patience=0)
        caller.sendall(GET.format("/health").encode())
        caller.settimeout(20)
        waiting.append(caller)
    systemd.start()
    print(sum(answer(caller).startswith(b"HTTP/1.1 200") for caller in waiting), "answered")
    systemd.stop()


def notify(address, path):
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(address)
    print("listening", flush=True)
    while True:
        words = heard.recv(4096).decode().replace("\n", " ")
        if words.startswith("READY=1"):
            words += f"; the door says {ask(path)['status']}"
        print(f"{time.monotonic():.3f} {words}", flush=True)


def flood(path, process, count):
    def burnt():
        fields = open(f"/proc/{process}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    crowd = []
    for _ in range(int(count)):
        caller = connected(path)
        caller.sendall(GET.format("/v1/events").replace("Connection: close\r\n", "").encode())
        crowd.append(caller)
    time.sleep(0.5)
    before = burnt()
    time.sleep(1.5)
    print(f"burnt {burnt() - before:.2f} s of 1.5")
    for caller in crowd:
        caller.close()
    start = time.monotonic()
    ask(path)
    print(f"answered after {time.monotonic() - start:.2f} s")


def vanish(path, rounds):
    tunnel = {"local": "tcp:127.0.0.1:0", "target": {"device": {"udid": "00008030-001A2B3C4D5E6F70", "port": 80}},
              "noRebind": False, "isKept": False}
    for number in range(int(rounds)):
        service = {"name": f"s{number}", "type": "_http._tcp", "port": 80, "txt": []}
        for target, document in (("/v1/tunnels/held", [tunnel]), ("/v1/advertisements/held", service)):
            body = json.dumps(document)
            caller = connected(path)
            caller.sendall(
                f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
            )
            # From at once to about when the answer comes.
            time.sleep(0.0005 * (number % 10))
            caller.close()
    end = time.monotonic() + 5
    while True:
        left = [len(ask(path, f"/v1/{kind}")[kind]) for kind in ("tunnels", "advertisements")]
        if left == [0, 0] or time.monotonic() > end:
            print("left:", *left)
            return
        time.sleep(0.05)


globals()[sys.argv[1]](*sys.argv[2:])
