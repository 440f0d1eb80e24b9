#!/usr/bin/env python3
"""Compares a stream through a remote broker with socat over OpenSSL, and with a direct connection, on one machine.

  make bench-remote ARGS="--rounds 5 --megabytes 512"

All three paths lead from the same client to the same app over loopback. `patchbay forward --broker` and the broker are two programs
with TLS 1.3 and client certificates between them, and so are the two socats. The paths take turns, in alternating order. Prints the
throughput in both directions with its ratio to socat's, and the time that a round trip of 64 bytes takes; writes the same as JSON to
--output. Exits with 1 only after a failed transfer, not because of a figure.
"""
import argparse
import json
import multiprocessing
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

CHUNK = 1 << 18
HERE = "127.0.0.1"


def serve(listener):
    """The app: receives (U), sends (D), or echoes (E). Each connection says first what it wants."""
    while True:
        connection = listener.accept()[0]
        multiprocessing.Process(target=answer, args=(connection,), daemon=False).start()
        connection.close()


def answer(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    head = connection.recv(9, socket.MSG_WAITALL)
    if not head:  # Only a check whether the path is open.
        return
    action, size = struct.unpack("!cQ", head)
    if action == b"U":
        connection.sendall(struct.pack("!Q", drain(connection, size)))
    elif action == b"D":
        send(connection, size)
    else:
        while data := connection.recv(64):
            connection.sendall(data)
    connection.close()


def exactly(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise OSError(f"the connection ended after {len(data)} of {size} bytes")
        data += part
    return data


def drain(connection, size):
    buffer, got = bytearray(CHUNK), 0
    while got < size:
        count = connection.recv_into(buffer)
        if not count:
            raise OSError(f"the connection ended after {got} of {size} bytes")
        got += count
    return got


def send(connection, size):
    data = memoryview(os.urandom(CHUNK))
    while size:
        size -= connection.send(data[:min(size, CHUNK)])


def connect(port):
    connection = socket.create_connection((HERE, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def up(port, size):
    """Returns bytes per second towards the app, until the app has received all."""
    with connect(port) as connection:
        connection.sendall(struct.pack("!cQ", b"U", size))
        start = time.perf_counter()
        send(connection, size)
        assert exactly(connection, 8) == struct.pack("!Q", size)
        return size / (time.perf_counter() - start)


def down(port, size):
    with connect(port) as connection:
        connection.sendall(struct.pack("!cQ", b"D", size))
        start = time.perf_counter()
        drain(connection, size)
        return size / (time.perf_counter() - start)


def trips(port, count):
    """Returns the seconds of each round trip of 64 bytes."""
    times, data = [], b"x" * 64
    with connect(port) as connection:
        connection.sendall(struct.pack("!cQ", b"E", 0))
        for number in range(count + 50):
            start = time.perf_counter()
            connection.sendall(data)
            exactly(connection, 64)
            if number >= 50:  # The first ones include the dial.
                times.append(time.perf_counter() - start)
    return times


def free_port():
    with socket.create_server((HERE, 0)) as listener:
        return listener.getsockname()[1]


class Rig:
    """The programs of one run, in a folder of their own."""

    def __init__(self, built, folder):
        self.folder = folder
        self.built = built
        self.programs = []
        self.environment = os.environ | {
            "PATCHBAY_SOCKET": f"{folder}/broker.sock", "HOME": folder, "XDG_STATE_HOME": f"{folder}/joined",
            "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={folder}/no-bus", "USBMUXD_SOCKET_ADDRESS": f"{folder}/no-usbmuxd",
        }
        self.environment.pop("PATCHBAY_BROKER", None)

    def start(self, *words, **options):
        program = subprocess.Popen(words, env=self.environment, **options)
        self.programs.append(program)
        return program

    def ask(self, *words, **options):
        return subprocess.run(
            [f"{self.built}/patchbay", *words], env=self.environment, check=True, stdout=subprocess.PIPE, text=True, **options
        ).stdout

    def stop(self):
        for program in reversed(self.programs):
            program.terminate()
            program.wait()

    def patchbay(self, app):
        """Returns the local port of a stream to the app through a joined broker, and the two programs."""
        broker = self.start(f"{self.built}/patchbayd", "--state-directory", f"{self.folder}/state", stderr=subprocess.DEVNULL)
        await_success(lambda: os.path.exists(f"{self.folder}/broker.sock"), "the broker listens")
        await_success(lambda: self.ask("status"), "the broker answers")
        self.ask("remote", "on", f"{HERE}:{free_port()}")
        self.ask("add", "Bench", f"{HERE}:{app}", "--kind", "mcp")
        pair = self.start(
            f"{self.built}/patchbay", "pair", "--remote", "--host", HERE, "--scope", "registry.read", "--scope", "tunnel.open",
            "--scope", "endpoint.call", stdout=subprocess.PIPE, text=True,
        )
        pairing = next(word for line in pair.stdout for word in line.split() if word.startswith("PATCHBAY:1:"))
        self.ask("join", "-", "--as", "bench", input=pairing)
        forward = self.start(
            f"{self.built}/patchbay", "forward", "--broker", "bench", "-e", "bench", "tcp:0", "--json",
            stdout=subprocess.PIPE, text=True,
        )
        local = json.loads(forward.stdout.readline())["tunnels"][0]["listenAddresses"][0]
        return int(local.rsplit(":", 1)[1]), (broker, forward)

    def socat(self, app):
        """Returns the local port of two socats with TLS 1.3 and client certificates between them."""
        for name in ("server", "client"):
            subprocess.run(
                ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-subj",
                 "/CN=" + HERE, "-keyout", f"{self.folder}/{name}.key", "-out", f"{self.folder}/{name}.crt"],
                check=True, stderr=subprocess.DEVNULL,
            )
        secure, local = free_port(), free_port()
        own = "cert={0}/{1}.crt,key={0}/{1}.key,cafile={0}/{2}.crt,verify=1,openssl-min-proto-version=TLS1.3"
        block = ["socat", "-b", str(CHUNK)]  # The default of 8 KiB is slower.
        programs = (
            self.start(*block, f"OPENSSL-LISTEN:{secure},bind={HERE},reuseaddr,fork,nodelay,"
                       + own.format(self.folder, "server", "client"), f"TCP:{HERE}:{app},nodelay"),
            self.start(*block, f"TCP-LISTEN:{local},bind={HERE},reuseaddr,fork,nodelay",
                       f"OPENSSL:{HERE}:{secure},commonname={HERE},nodelay," + own.format(self.folder, "client", "server")),
        )
        for port in (secure, local):
            await_success(lambda: connect(port).close() or True, "socat listens")
        return local, programs


def await_success(attempt, what):
    for _ in range(100):
        try:
            if attempt():
                return
        except (OSError, subprocess.CalledProcessError):
            pass
        time.sleep(0.1)
    sys.exit(f"failed: {what}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", required=True, help="the folder of patchbay and patchbayd")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--trips", type=int, default=2000)
    parser.add_argument("--output")
    options = parser.parse_args()
    listener = socket.create_server((HERE, 0))
    app = multiprocessing.Process(target=serve, args=(listener,))
    app.start()
    direct = listener.getsockname()[1]
    size = options.megabytes << 20
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(os.path.abspath(options.built), folder)
        try:
            ports = {"socat": rig.socat(direct)[0], "patchbay": rig.patchbay(direct)[0], "direct": direct}
            figures = {name: {"up": [], "down": [], "trip": []} for name in ports}
            for number in range(options.rounds):
                for name in (list(ports) if number % 2 else list(reversed(ports))):
                    figures[name]["up"].append(up(ports[name], size))
                    figures[name]["down"].append(down(ports[name], size))
                    figures[name]["trip"].append(statistics.median(trips(ports[name], options.trips)))
                print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
        finally:
            rig.stop()
            app.terminate()
    median = {name: {key: statistics.median(values) for key, values in each.items()} for name, each in figures.items()}
    print(f"{'path':10}{'up MB/s':>10}{'down MB/s':>11}{'trip µs':>10}{'added µs':>10}")
    for name, each in median.items():
        added = (each["trip"] - median["direct"]["trip"]) * 1e6
        print(f"{name:10}{each['up'] / 1e6:10.0f}{each['down'] / 1e6:11.0f}{each['trip'] * 1e6:10.0f}{added:10.0f}")
    for key in ("up", "down"):
        ratios = [ours / theirs for ours, theirs in zip(figures["patchbay"][key], figures["socat"][key])]
        print(f"patchbay / socat {key}: {statistics.median(ratios):.2f} (rounds: {min(ratios):.2f} to {max(ratios):.2f})")
    if options.output:
        with open(options.output, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
