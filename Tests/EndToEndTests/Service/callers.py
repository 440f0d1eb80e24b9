"""Clients of the broker and a stand-in for systemd, for the tests of the service. The first argument selects the scenario.

  restart PROGRAM STATE SOCKET NOTIFY ROUNDS   keeps the listening sockets, as systemd does, through restarts under load
  queue PROGRAM STATE SOCKET NOTIFY CALLERS    lets CALLERS clients wait while the daemon is restarted
  restart-tcp, queue-tcp                       the same for clients at 127.0.0.1 and at ::1
  once PORT                                    sends one request to both of them
  notify NOTIFY SOCKET                         prints the daemon's notifications, and whether SOCKET responds at READY=1
  flood SOCKET PROCESS COUNT                   uses up every descriptor of the daemon
  vanish SOCKET ROUNDS                         requests ephemeral objects and disconnects before the response
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


def connected(address, timeout=20):
    """Connects to a unix socket's path, or to an address and port."""
    if isinstance(address, tuple):
        caller = socket.create_connection(address, timeout=timeout or 20)
        caller.settimeout(timeout)
        return caller
    caller = socket.socket(socket.AF_UNIX)
    caller.settimeout(timeout)
    caller.connect(address)
    return caller


def answer(caller):
    data = b""
    while part := caller.recv(65536):
        data += part
    caller.close()
    return data


def ask(path, target="/health"):
    """Returns the body of a response; any other result is an error."""
    caller = connected(path)
    caller.sendall(GET.format(target).encode())
    head, _, body = answer(caller).partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200") or not body:
        raise OSError(f"no answer but {head!r}")
    return json.loads(body)


class Systemd:
    """Holds the listening sockets and receives the daemon's notifications."""

    def __init__(self, program, state, path, notify):
        self.command = [program, "--state-directory", state]
        control = socket.socket(socket.AF_UNIX)
        control.bind(path)
        loopback = socket.create_server(("127.0.0.1", 0))
        port = loopback.getsockname()[1]
        self.listeners = [control, loopback, socket.create_server(("::1", port), family=socket.AF_INET6)]
        self.addresses = [("127.0.0.1", port), ("::1", port)]
        for listener in self.listeners:
            listener.listen(4096)
        self.notify = notify
        self.heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.heard.bind(notify)
        self.heard.settimeout(20)

    def start(self):
        self.process = os.fork()
        if self.process == 0:
            # sd_listen_fds(3): the sockets begin at descriptor 3. Each is copied before its number is overwritten.
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
    addresses = systemd.addresses if overTCP else [path]

    def call(address):
        while not isOver:
            try:
                answered.append(ask(address))
            except (OSError, ValueError) as error:
                lost.append(repr(error))

    systemd.start()
    callers = [threading.Thread(target=call, args=(addresses[number % len(addresses)],)) for number in range(8)]
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
    addresses = systemd.addresses if overTCP else [path]
    for number in range(int(count)):
        # Non-blocking, like the clients of an event loop: a full backlog refuses them with EAGAIN.
        caller = connected(addresses[number % len(addresses)], timeout=0)
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
            words += f"; the API says {ask(path)['status']}"
        print(f"{time.monotonic():.3f} {words}", flush=True)


def flood(path, process, count):
    def burnt():
        fields = open(f"/proc/{process}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    clients = []
    for _ in range(int(count)):
        caller = connected(path)
        caller.sendall(GET.format("/v1/events").replace("Connection: close\r\n", "").encode())
        clients.append(caller)
    time.sleep(0.5)
    before = burnt()
    time.sleep(1.5)
    print(f"burnt {burnt() - before:.2f} s of 1.5")
    for caller in clients:
        caller.close()
    start = time.monotonic()
    ask(path)
    print(f"answered after {time.monotonic() - start:.2f} s")


def vanish(path, rounds):
    tunnel = {"local": "tcp:127.0.0.1:0", "target": {"device": {"udid": "00008030-001A2B3C4D5E6F70", "port": 80}},
              "noRebind": False, "persistent": False}
    for number in range(int(rounds)):
        service = {"name": f"s{number}", "type": "_http._tcp", "port": 80, "txt": []}
        for target, document in (("/v1/tunnels/ephemeral", [tunnel]), ("/v1/advertisements/ephemeral", service)):
            body = json.dumps(document)
            caller = connected(path)
            caller.sendall(
                f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
            )
            # Delays from zero to about the time of the response.
            time.sleep(0.0005 * (number % 10))
            caller.close()
    end = time.monotonic() + 5
    while True:
        left = [len(ask(path, f"/v1/{kind}")[kind]) for kind in ("tunnels", "advertisements")]
        if left == [0, 0] or time.monotonic() > end:
            print("left:", *left)
            return
        time.sleep(0.05)


scenario, _, tcp = sys.argv[1].partition("-")
globals()[scenario](*sys.argv[2:], **({"overTCP": True} if tcp else {}))
