"""Callers of the broker, and what systemd does for it, for the tests of the service. The first word says which.

  restart PROGRAM STATE SOCKET NOTIFY ROUNDS   keeps the listening sockets, as systemd does, through restarts under callers
  queue PROGRAM STATE SOCKET NOTIFY CALLERS    lets as many callers wait while the daemon is restarted
  restart-tcp, queue-tcp                       the same for callers at 127.0.0.1 and at ::1
  once PORT                                    asks at both of them
  notify NOTIFY SOCKET                         prints what the daemon tells systemd, and whether its door answers at READY=1
  flood SOCKET PROCESS COUNT                   takes every descriptor that the daemon has
  vanish SOCKET ROUNDS                         asks for held things and goes before the answer
"""

import fcntl
import json
import os
import signal
import socket
import sys
import threading
import time

GET = "GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def connected(door, patience=20):
    """At a socket's path, or at an address and port."""
    if isinstance(door, tuple):
        caller = socket.create_connection(door, timeout=patience or 20)
        caller.settimeout(patience)
        return caller
    caller = socket.socket(socket.AF_UNIX)
    caller.settimeout(patience)
    caller.connect(door)
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
    """Holds the listening sockets and hears what the daemon tells."""

    def __init__(self, program, state, path, notify):
        self.command = [program, "--state-dir", state]
        control = socket.socket(socket.AF_UNIX)
        control.bind(path)
        loopback = socket.create_server(("127.0.0.1", 0))
        port = loopback.getsockname()[1]
        self.listeners = [control, loopback, socket.create_server(("::1", port), family=socket.AF_INET6)]
        self.doors = [("127.0.0.1", port), ("::1", port)]
        for listener in self.listeners:
            listener.listen(4096)
        self.notify = notify
        self.heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.heard.bind(notify)
        self.heard.settimeout(20)

    def start(self):
        self.process = os.fork()
        if self.process == 0:
            # sd_listen_fds(3): the sockets begin at 3. None of them may be overwritten before it was copied.
            copies = [fcntl.fcntl(listener, fcntl.F_DUPFD, 64) for listener in self.listeners]
            for number, copy in enumerate(copies, 3):
                os.dup2(copy, number, inheritable=True)
                os.close(copy)
            os.environ.update(LISTEN_FDS=str(len(copies)), LISTEN_PID=str(os.getpid()), NOTIFY_SOCKET=self.notify)
            os.execv(self.command[0], self.command)
        while not self.heard.recv(4096).startswith(b"READY=1"):
            pass

    def stop(self):
        os.kill(self.process, signal.SIGTERM)
        status = os.waitpid(self.process, 0)[1]
        if status != 0:
            raise OSError(f"the daemon ended with {status}")


def restart(program, state, path, notify, rounds, overTCP=False):
    systemd = Systemd(program, state, path, notify)
    answered, lost, isOver = [], [], False
    doors = systemd.doors if overTCP else [path]

    def call(door):
        while not isOver:
            try:
                answered.append(ask(door))
            except (OSError, ValueError) as error:
                lost.append(repr(error))

    systemd.start()
    callers = [threading.Thread(target=call, args=(doors[number % len(doors)],)) for number in range(8)]
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


def queue(program, state, path, notify, count, overTCP=False):
    systemd = Systemd(program, state, path, notify)
    systemd.start()
    systemd.stop()
    waiting = []
    doors = systemd.doors if overTCP else [path]
    for number in range(int(count)):
        # Non-blocking, as the clients of an event loop are: a full queue refuses them with EAGAIN.
        caller = connected(doors[number % len(doors)], patience=0)
        caller.sendall(GET.format("/health").encode())
        caller.settimeout(20)
        waiting.append(caller)
    systemd.start()
    print(sum(answer(caller).startswith(b"HTTP/1.1 200") for caller in waiting), "answered")
    systemd.stop()


def once(port):
    print(*[ask((host, int(port)))["status"] for host in ("127.0.0.1", "::1")])


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


story, _, door = sys.argv[1].partition("-")
globals()[story](*sys.argv[2:], **({"overTCP": True} if door else {}))
