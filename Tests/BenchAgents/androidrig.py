"""The parts of the comparison with adb: the servers on the phone, the programs, and the ways to a port of the phone."""
import asyncio
import contextlib
import json
import multiprocessing
import os
import socket
import subprocess
import sys

from remote import HERE, await_success, exactly, free_port
from remote import serve as serve_blocks

PHONE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../TestSupport/adb/phone.py")
RELAY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "relay.c")
PATHS = ("adb forward", "smart socket", "patchbay")
LIMIT = 30  # Seconds for each step of a connection.
UPLOAD, ANSWER = 100_000, 1 << 20


class App(asyncio.Protocol):
    """The server of a trial on the phone: echo, answer (after 100 kB), late (after the end of the stream), count, or endless."""

    def __init__(self, role, counts):
        self.role, self.counts, self.got = role, counts, 0

    def connection_made(self, transport):
        self.transport = transport
        if self.role == "endless":
            self.resume_writing()

    def data_received(self, data):
        self.got += len(data)
        if self.role == "echo":
            self.transport.write(data)
        elif self.role == "answer" and self.got == UPLOAD:
            # The client's end of stream comes first.
            asyncio.get_running_loop().call_later(0.2, self.answer)

    def answer(self):
        self.transport.write(bytes(ANSWER))
        self.transport.close()

    def eof_received(self):
        if self.role == "late":
            self.answer()
        return self.role in ("answer", "late")

    def connection_lost(self, error):
        if self.role == "count":
            self.counts.put(self.got)

    def pause_writing(self):
        self.isPaused = True
        if self.role == "echo":
            self.transport.pause_reading()

    def resume_writing(self):
        self.isPaused = False
        if self.role == "echo":
            return self.transport.resume_reading()
        while self.role == "endless" and not self.isPaused and not self.transport.is_closing():
            self.transport.write(bytes(1 << 16))


class Apps:
    """The servers of all roles, in two processes, and their ports."""

    def __init__(self):
        self.counts = multiprocessing.Queue()
        roles = ("blocks", "echo", "answer", "late", "count", "endless")
        self.listeners = {role: socket.create_server((HERE, 0), backlog=1024) for role in roles}
        self.ports = {role: listener.getsockname()[1] for role, listener in self.listeners.items()}
        blocks = self.listeners.pop("blocks")
        targets = ((serve_blocks, blocks), (self.run, self.listeners))
        self.processes = [multiprocessing.Process(target=target, args=(what,)) for target, what in targets]
        for process in self.processes:
            process.start()

    def run(self, listeners):
        async def main():
            loop = asyncio.get_running_loop()
            for role, listener in listeners.items():
                await loop.create_server(lambda role=role: App(role, self.counts), sock=listener, backlog=1024)
            await asyncio.Event().wait()

        asyncio.run(main())

    def stop(self):
        for process in self.processes:
            process.terminate()


class Rig:
    """An adb server, a phone and a broker of their own, and the ways to the phone's ports."""

    def __init__(self, built, folder, ports):
        self.built, self.ports, self.programs, self.tunnels = built, ports, {}, {}
        self.adb, self.phone_port, self.folder = free_port(), free_port(), folder
        self.environment = os.environ | {
            "HOME": folder, "PATCHBAY_SOCKET": f"{folder}/broker.sock", "ADB_SERVER_SOCKET": f"tcp:{HERE}:{self.adb}", "ADB_USB": "0",
            "ADB_EMU": "1", "ADB_LOCAL_TRANSPORT_MAX_PORT": "1", "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={folder}/no-bus",
            "USBMUXD_SOCKET_ADDRESS": f"{folder}/no-usbmuxd",
        }
        self.environment.pop("PATCHBAY_BROKER", None)
        try:
            self.start_all(folder)
        except BaseException:
            self.stop()
            raise

    def start_all(self, folder):
        self.start("adb", "adb", "-L", f"tcp:{self.adb}", "server", "nodaemon")
        await_success(lambda: self.ask("host:version"), "the adb server answers")
        self.plug()
        with open(f"{folder}/patchbay.toml", "w") as file:
            file.write("[api]\ntcp = false\n[discovery]\nenabled = false\n[devices]\nread_logs = false\nprobe_ports = []\n"
                       "max_streams = 9000\n[tunnels]\nmax_connections = 9000\n")
        self.start("broker", f"{self.built}/patchbayd", "--config", f"{folder}/patchbay.toml", "--state-directory", f"{folder}/state")
        await_success(lambda: "Pixel" in self.patchbay("devices"), "the broker lists the phone")

    def start(self, name, *words):
        log = subprocess.DEVNULL
        self.programs[name] = subprocess.Popen(words, env=self.environment, stdin=log, stdout=log, stderr=log)

    def patchbay(self, *words):
        return subprocess.run(
            [f"{self.built}/patchbay", *words], env=self.environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True).stdout

    def plug(self):
        self.serial = f"emulator-{self.phone_port - 1}"
        self.start("phone", sys.executable, PHONE, str(self.phone_port), "--serial", "R58M12ABCDE")
        await_success(lambda: socket.create_connection((HERE, self.phone_port)).close() or True, "the phone listens")
        with contextlib.suppress(OSError):
            self.ask(f"host:emulator:{self.phone_port}")
        await_success(lambda: f"{self.serial}\tdevice" in self.ask("host:devices"), "the adb server lists the phone")

    def unplug(self):
        self.end(self.programs.pop("phone"))

    def end(self, program):
        program.kill()
        program.wait()

    def stop(self):
        if "broker" in self.programs:
            self.programs["broker"].terminate()
        for program in self.programs.values():
            self.end(program)

    def connect(self):
        return connected((HERE, self.adb))

    def ask(self, service):
        """Returns all that the server sends after a request, or fails."""
        with self.connect() as connection:
            request(connection, service)
            text = b""
            while part := connection.recv(1 << 16):
                text += part
            return text.decode()

    def dial(self, path, role, *options):
        """Connects to the port of the role on one of the paths. The options are those of `patchbay forward`."""
        port = self.ports[role] if isinstance(role, str) else role
        if path == "direct":
            return connected((HERE, port))
        if path == "smart socket":
            connection = self.connect()
            try:
                request(connection, f"host:transport:{self.serial}")
                request(connection, f"tcp:{port}")
            except OSError:
                connection.close()
                raise
            return connection
        return connected((HERE, self.tunnel(path, port, options)))

    def tunnel(self, path, port, options):
        key = (path, port, *options)
        if key not in self.tunnels:
            if path == "patchbay":
                line = self.patchbay("forward", "--detach", f"tcp:0:{port}", "--device", "android-R58M12ABCDE", "--json", *options)
                self.tunnels[key] = int(json.loads(line)["tunnels"][0]["listenAddresses"][0].rsplit(":", 1)[1])
            elif path == "relay":
                self.tunnels[key] = self.start_relay(port)
            else:
                self.tunnels[key] = int(self.ask(f"host-serial:{self.serial}:forward:tcp:0;tcp:{port}")[8:])
        return self.tunnels[key]

    def start_relay(self, port):
        program = f"{self.folder}/relay"
        if not os.path.exists(program):
            subprocess.run(["cc", "-O2", "-o", program, RELAY], check=True)
        relay = subprocess.Popen([program, str(self.adb), self.serial, str(port)], stdout=subprocess.PIPE, text=True)
        self.programs[f"relay {port}"] = relay
        return int(relay.stdout.readline())


def connected(address):
    connection = socket.create_connection(address, LIMIT)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def request(connection, service):
    connection.sendall(b"%04x" % len(service) + service.encode())
    answer = exactly(connection, 4)
    if answer != b"OKAY":
        raise OSError(f"{service}: {answer.decode()} " + connection.recv(1000)[4:].decode())
