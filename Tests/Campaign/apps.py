"""Apps, the byte servers of phones, and what they record: the truth that the oracle compares with."""
import collections
import hashlib
import secrets
import socket
import struct
import sys
import threading
import time

from programs import SUPPORT, Program

BYTES_PORT = 9900


class Records:
    """What apps, byte servers and traps saw, and the violations."""

    def __init__(self):
        self.deliveries = collections.defaultdict(list)
        self.violations, self.counters, self.lock = [], collections.Counter(), threading.Lock()

    def violate(self, text):
        with self.lock:
            self.violations.append((time.monotonic(), text))

    def count(self, name, by=1):
        with self.lock:
            self.counters[name] += by


class App:
    """An app with AppReveal on a phone or on a machine of the network. Each launch has a token of its own."""

    def __init__(self, bundle, mode, place, port, records):
        self.bundle, self.mode, self.place, self.port, self.records = bundle, mode, place, port, records
        self.id = self.program = self.token = self.known = None
        self.launches, self.lookups = 0, 0
        # A boundary from which on no request may come, such as the end of an approval.
        self.closed_since = None

    def launch(self, port=None):
        self.port = port or self.port
        self.launches += 1
        token = self.token = secrets.token_hex(16)
        # Every second launch has a launch ID.
        self.boot = f"{self.bundle}-{self.launches}" if self.launches % 2 == 0 else ""
        address = self.place.address if self.place.is_phone else "0.0.0.0"
        self.program = Program(
            sys.executable, "-u", f"{SUPPORT}/sampleapp.py", "--mode", self.mode, "--named", "--bundle", self.bundle,
            "--address", address, "--port", str(self.port), "--token", token, "--boot", self.boot,
            machine=self.place.machine, seen=lambda at, line: self.see(token, at, line))
        self.program.await_line("listening on ")

    def see(self, token, at, line):
        word, _, rest = line.partition(": ")
        if word == "token":
            self.records.count("tokens seen by apps")
            if rest != token:
                self.records.violate(f"{self.bundle} got the token {rest} instead of {token}")
        elif word == "begin":
            self.records.deliveries[rest].append((at, self.bundle, token))
        elif word == "request":
            self.lookups += 1
            # A request that began before is logged when it ends.
            if self.closed_since and at > self.closed_since + 1:
                self.records.violate(f"{self.bundle} got a request without an approval: {rest}")

    def quit(self):
        self.program.kill()

    @property
    def is_running(self):
        return self.program is not None and self.program.is_running

    @property
    def is_reachable(self):
        return self.is_running and self.place.is_attached and self.closed_since is None


def pattern(key, size):
    return hashlib.shake_128(key.encode()).digest(size)


class ByteServer:
    """A server on a phone's port 9900. A request is a line `DOWN UP NONCE` and UP bytes; the answer is DOWN bytes of this phone."""

    def __init__(self, name, address, records):
        self.name, self.records = name, records
        self.listener = socket.create_server((address, BYTES_PORT), backlog=128)
        threading.Thread(target=self.accept, daemon=True).start()

    def stop(self):
        # A close alone does not end accept(2).
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        connection.settimeout(60)
        with connection:
            try:
                with connection.makefile("rb") as file:
                    line = file.readline(100)
                    if not line.endswith(b"\n"):
                        return
                    down, up, nonce = line.split()
                    sent = file.read(int(up))
                nonce = nonce.decode()
                if sent != pattern(f"up {self.name} {nonce}", int(up))[:len(sent)]:
                    self.records.violate(f"{self.name} got wrong bytes of the stream {nonce}")
                elif len(sent) == int(up):
                    connection.sendall(pattern(f"down {self.name} {nonce}", int(down)))
                else:
                    # The client is gone, or its connection was cut.
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except ValueError:
                self.records.violate(f"{self.name} got a request that nobody sent: {line[:60]!r}")
            except OSError:
                pass


TRAP = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=64)
print("ready", flush=True)
while True:
    connection, address = listener.accept()
    print("connection: from", address, flush=True)
    connection.close()
"""


def set_trap(machine, port, records):
    """Listens where nobody may connect."""
    def see(_, line):
        if line.startswith("connection"):
            records.violate(f"the trap at {machine.address}:{port} got a {line}")
    trap = Program(sys.executable, "-c", TRAP, machine.address, str(port), machine=machine, seen=see)
    trap.await_line("ready")
    return trap
