#!/usr/bin/env python3
"""A simulated Android phone: the device side of the adb transport protocol (AOSP `packages/modules/adb/protocol.txt`) over TCP.

    phone.py PORT [--address 127.0.0.1] [--serial test] [--model Pixel_8] [--name "Pixel 8"] [--release 15] [--logcat FILE]
             [--avd NAME] [--boot-id UUID] [--apps FILE] [--forward NAME=PORT ...] [--uid 10234] [--refuse-auth]
             [--hostile MODE] [--old-logcat]

The real adb server connects with `adb connect 127.0.0.1:PORT`, or with `host:emulator:PORT`. Services of the phone:
  tcp:N                 connects to ADDRESS:N, which plays the phone's loopback
  localabstract:NAME    connects to ADDRESS:PORT of `--forward NAME=PORT`, or of NAME=PORT in the file of `--apps`
  shell:getprop KEY, shell:settings get global device_name, shell:cat /proc/net/tcp, shell:stat -c FORMAT /proc/PID,
  shell:cmd package list packages, shell:grep -a TEXT /proc/net/unix, shell:cat /proc/net/unix, shell:cat /proc/PID/cmdline
                        canned answers; with shell,v2 in its packets. Commands with `;` between them are answered in order.
  reverse:forward:tcp:N;tcp:M, reverse:killforward:tcp:N, reverse:killforward-all, reverse:list-forward
                        listens on ADDRESS:N until the unplug; each connection opens the service tcp:M of the server
  shell:logcat …        the file of `--logcat`, and what is added to it later; with -d or -t only the former. --uid=N, -t N, -T N
                        and -T TIME select lines as logcat does, which counts before it filters; all else prints the file as
                        it is. With --old-logcat, --uid is an unknown option. Each logcat that goes on is told on standard output
  track-app             the processes of `--apps`, again at each change of the file; refused without the option
Each line of the file of `--apps` is an app that runs: PID UID PACKAGE PORT… The ports are those on which it listens, and
NAME=PORT is an abstract socket. An app with the PID 0 is installed and does not run.
The modes of --hostile: `garbage` answers the greeting with random bytes, `length` answers the first OPEN with a packet of
4 GB, and `endless` sends without end on each stream: records of track-app, packets of 4 GB of the shell, or plain output.
One WRTE of a stream is in flight until its OKAY, as the protocol demands. SIGTERM ends the phone, which is an unplug.
"""
import argparse, asyncio, os, shlex, struct, sys

CNXN, AUTH, OPEN, OKAY, WRTE, CLSE = (int.from_bytes(c, "little") for c in (b"CNXN", b"AUTH", b"OPEN", b"OKAY", b"WRTE", b"CLSE"))
VERSION, MAX = 0x01000001, 256 * 1024


class Phone:
    def __init__(self, o):
        self.o, self.streams, self.next, self.reverse = o, {}, 1, {}

    async def serve(self, reader, writer):
        self.reader, self.writer, self.streams = reader, writer, {}
        try:
            while True:
                command, a, b, n, _, _ = struct.unpack("<6I", await reader.readexactly(24))
                await self.handle(command, a, b, await reader.readexactly(n))
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            for s in list(self.streams.values()):
                s.close()
            for listener, _ in self.reverse.values():
                listener.close()
            writer.close()

    def send(self, command, a, b, data=b""):
        # From version 0x01000001 on, the checksum is not looked at.
        self.writer.write(struct.pack("<6I", command, a, b, len(data), sum(data) & 0xFFFFFFFF if len(data) < 4096 else 0, command ^ 0xFFFFFFFF) + data)

    async def handle(self, command, a, b, data):
        if command == CNXN:
            if self.o.hostile == "garbage":
                return self.writer.write(os.urandom(1 << 20))
            if self.o.refuse_auth:
                return self.send(AUTH, 1, 0, os.urandom(20))
            banner = f"device::ro.product.name={self.o.model};ro.product.model={self.o.model};ro.product.device=test;features=shell_v2,cmd"
            self.send(CNXN, VERSION, MAX, banner.encode())
        elif command == AUTH:
            self.send(AUTH, 1, 0, os.urandom(20))
        elif command == OPEN and self.o.hostile == "length":
            self.writer.write(struct.pack("<6I", WRTE, 1, a, 0xFFFFFFFF, 0, WRTE ^ 0xFFFFFFFF) + bytes(1 << 20))
        elif command == OPEN:
            await self.open(a, data.rstrip(b"\0").decode())
        elif command == OKAY and b in self.streams:
            self.streams[b].remote = a
            self.streams[b].may_send.set()
        elif command == WRTE and b in self.streams:
            self.streams[b].received(data)
        elif command == CLSE and b in self.streams:
            self.streams.pop(b).close()
        await self.writer.drain()

    async def open(self, remote, service):
        local, self.next = self.next, self.next + 1
        try:
            stream = Stream(self, local, remote)
            await stream.start(service)
            self.streams[local] = stream
            self.send(OKAY, local, remote)
            stream.run()
        except OSError:
            self.send(CLSE, 0, remote)

    async def change_reverse(self, rest):
        """The answer to a request of `adb reverse`."""
        verb, _, rule = rest.partition(":")
        port, _, target = rule.removeprefix("norebind:").partition(";")
        if verb == "list-forward":
            text = "".join(f"(reverse) {name} {target}\n" for name, (_, target) in self.reverse.items())
            return b"%04x" % len(text) + text.encode()
        if verb == "killforward-all":
            for name in list(self.reverse):
                self.reverse.pop(name)[0].close()
        elif verb == "forward" and port in self.reverse:
            self.reverse[port] = (self.reverse[port][0], target)
        elif verb == "forward":
            accept = lambda reader, writer: self.accept(reader, writer, self.reverse[port][1])
            try:
                listener = await asyncio.start_server(accept, self.o.address, int(port.removeprefix("tcp:")))
            except OSError as error:
                return failure(f"cannot bind listener: {os.strerror(error.errno)}")
            self.reverse[port] = (listener, target)
        elif verb == "killforward" and port in self.reverse:
            self.reverse.pop(port)[0].close()
        else:
            return failure(f"listener '{port}' not found")
        return b"OKAY"

    def accept(self, reader, writer, target):
        """Opens a stream to the server for a connection to a port of the phone."""
        stream = Stream(self, self.next, 0)
        self.next += 1
        stream.reader, stream.writer = reader, writer
        # The answer of the server has its number of the stream, and allows the first WRTE.
        stream.may_send.clear()
        self.streams[stream.local] = stream
        self.send(OPEN, stream.local, 0, target.encode() + b"\0")
        stream.run()

    def answer(self, service):
        kind, _, rest = service.partition(":")
        out = b"".join(self.output(command.strip()) for command in rest.split(";"))
        if self.refuses(rest):
            error = b"logcat: Unknown option '--uid'.\n"
            return struct.pack("<BI", 2, len(error)) + error + struct.pack("<BIB", 3, 1, 1)
        # shell,v2 sends packets: id 1 is stdout, id 3 is the exit code.
        return out if "v2" not in kind else struct.pack("<BI", 1, len(out)) + out + struct.pack("<BIB", 3, 1, 0)

    def refuses(self, command):
        return self.o.old_logcat and command.startswith("logcat") and "--uid" in command

    def output(self, rest):
        if rest.startswith("getprop"):
            key = rest.removeprefix("getprop").strip()
            values = {
                "ro.product.model": self.o.model.replace("_", " "),
                "ro.serialno": self.o.serial,
                "ro.boot.qemu.avd_name": self.o.avd,
                "ro.build.version.release": self.o.release,
            }
            text = values.get(key, "")
        elif rest == "settings get global device_name":
            text = self.o.name
        elif rest == "cat /proc/sys/kernel/random/boot_id" and self.o.boot_id:
            text = self.o.boot_id
        elif rest.startswith("logcat"):
            data = open(self.o.logcat, "rb").read() if self.o.logcat else b""
            return LogSelection(rest).of(data) if data else b""
        elif "/proc/net/tcp" in rest:
            text = self.sockets()
        elif rest.endswith("/proc/net/unix"):
            rows = ["Num       RefCount Protocol Flags    Type St Inode Path"]
            rows += [f"0000000000000000: 00000002 00000000 00010000 0001 01 12345 @{name}" for name in self.abstract()]
            text = "\n".join(row for row in rows if rest.startswith("cat") or rest.split()[2] in row)
        elif rest.startswith("cat /proc/") and rest.endswith("/cmdline"):
            text = next((f"{package}\0\0" for pid, _, package, *_ in self.apps() if pid == rest.split("/")[2]), "")
        elif rest.startswith("stat -c"):
            users = {f"/proc/{pid}": uid for pid, uid, *_ in self.apps()}
            text = "\n".join(f"process {users[name]} {name}" for name in rest.split() if name in users)
        elif rest.startswith("cmd package list packages -U"):
            wanted = rest.split()[-1]
            text = "\n".join(f"package:{package} uid:{uid}" for _, uid, package, *_ in self.installed() if wanted in package)
        elif rest.startswith("cmd package list packages"):
            wanted = rest.split()[-1]
            found = {package for _, uid, package, *_ in self.installed() if uid == wanted}
            text = "\n".join(f"package:{package} uid:{wanted}" for package in found)
        else:
            text = f"/system/bin/sh: {rest}: not found"
        return text.encode() + b"\n"

    def sockets(self):
        """/proc/net/tcp of the phone: only its own listeners, on its loopback, owned by the app's user."""
        # All sockets of this machine, such as thousands of ended connections of a test, would be more than a phone lists.
        mine = "".join(f"{int(b):02X}" for b in reversed(self.o.address.split(".")))
        head, *lines = open("/proc/net/tcp").read().splitlines()
        rows = [line.replace(mine, "0100007F").split() for line in lines if line.split()[1].startswith(mine)]
        rows = [row for row in rows if row[3] == "0A"]
        owners = {int(port): uid for _, uid, _, *ports in self.apps() for port in ports if port.isdigit()}
        for row in rows:
            row[7] = str(owners.get(int(row[1].split(":")[1], 16), self.o.uid))
        return "\n".join([head] + ["  ".join(row) for row in rows])

    def abstract(self):
        """The ports behind abstract sockets, by name."""
        words = self.o.forward + [word for _, _, _, *words in self.apps() for word in words if "=" in word]
        return dict(word.split("=") for word in words)

    def apps(self):
        """The apps that run."""
        return [app for app in self.installed() if app[0] != "0"]

    def installed(self):
        lines = open(self.o.apps).read().splitlines() if self.o.apps else []
        return [line.split() for line in lines if line.strip()]

    def processes(self):
        """A list of the service track-app."""
        def field(number, value):
            return bytes([number << 3 | 2]) + varint(len(value)) + value

        entries = [b"\x08" + varint(int(pid)) + b"\x10\x01" + field(4, b"arm64") for pid, *_ in self.apps()]
        message = b"".join(field(1, entry) for entry in entries)
        return b"%04x" % len(message) + message


def failure(reason):
    return b"FAIL%04x" % len(reason) + reason.encode()


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


class LogSelection:
    """The lines of a log that a command of logcat prints."""

    def __init__(self, command):
        words = shlex.split(command)
        self.uid = next((word[6:].encode() for word in words if word.startswith("--uid=")), None)
        start = next((words[i + 1] for i, word in enumerate(words[:-1]) if word in ("-t", "-T")), "")
        self.count = int(start) if start.isdigit() else None
        self.time = None if start.isdigit() else start.encode()
        self.isWhole = self.uid is None and not start

    def of(self, data):
        """The lines of the past."""
        if self.isWhole:
            return data
        lines = data.splitlines(keepends=True)
        if self.count is not None:
            lines = lines[-self.count:]
        return b"".join(self.new(lines))

    def new(self, lines):
        for line in lines:
            if self.time and line[:18] < self.time:
                continue
            self.time = None
            if self.uid is None or line[18:40].split()[:1] == [self.uid]:
                yield line


class Stream:
    def __init__(self, phone, local, remote):
        self.phone, self.local, self.remote = phone, local, remote
        self.may_send, self.writer, self.reader, self.feeder, self.log = asyncio.Event(), None, None, None, None
        self.may_send.set()

    async def start(self, service):
        kind, _, rest = service.partition(":")
        if self.phone.o.hostile == "endless" and kind not in ("tcp", "localabstract"):
            self.follow(self.endless(service))
        elif kind == "tcp":
            self.reader, self.writer = await asyncio.open_connection(self.phone.o.address, int(rest))
        elif kind == "localabstract":
            ports = self.phone.abstract()
            if rest not in ports:
                raise OSError("no such name")
            self.reader, self.writer = await asyncio.open_connection(self.phone.o.address, int(ports[rest]))
        elif kind == "track-app" and self.phone.o.apps:
            self.follow(self.changes(self.phone.processes))
        elif kind == "reverse":
            self.reader = asyncio.StreamReader()
            self.reader.feed_data(await self.phone.change_reverse(rest))
            self.reader.feed_eof()
        elif self.isFollowing(kind, rest):
            self.log = rest
            print("logcat begins:", rest, flush=True)
            self.follow(self.lines(LogSelection(rest), isPacked="v2" in kind))
        elif kind.split(",")[0] in ("shell", "exec"):
            self.reader = asyncio.StreamReader()
            self.reader.feed_data(self.phone.answer(service))
            self.reader.feed_eof()
        else:
            raise OSError("unknown service")

    def isFollowing(self, kind, command):
        ends = " -d" in command or " -t " in command or self.phone.refuses(command)
        return kind.split(",")[0] == "shell" and command.startswith("logcat") and not ends and self.phone.o.logcat

    def follow(self, parts):
        """Sends the parts of a service that does not end."""
        self.reader = asyncio.StreamReader()

        async def feed():
            async for part in parts:
                self.reader.feed_data(part)
                while len(self.reader._buffer) > 4 * MAX:
                    await asyncio.sleep(0.01)

        self.feeder = asyncio.ensure_future(feed())

    async def changes(self, value):
        last = None
        while True:
            new = value()
            if new != last:
                yield new
            last = new
            await asyncio.sleep(0.02)

    async def endless(self, service):
        count = 0
        if service.startswith("shell,v2"):
            yield struct.pack("<BI", 1, 0xFFFFFFFF)
        while True:
            # Another process in each record: field 1 has an entry, whose field 1 is the number of the process.
            count = (count + 1) % 128
            record = b"0005" + bytes([10, 3, 8, 0x80 | count, 0x20])
            yield record * 1000 if service == "track-app" else b"x" * 65536

    async def lines(self, selection, isPacked):
        rest = b""
        with open(self.phone.o.logcat, "rb") as log:
            if selection.count is not None:
                rest = selection.of(log.read())
            while True:
                new = log.read(65536)
                part, rest = rest + new, b""
                if not selection.isWhole:
                    whole, end, rest = part.rpartition(b"\n")
                    part = b"".join(selection.new((whole + end).splitlines(keepends=True)))
                if part:
                    yield struct.pack("<BI", 1, len(part)) + part if isPacked else part
                await asyncio.sleep(0 if new else 0.02)

    def run(self):
        self.task = asyncio.ensure_future(self.pump())

    async def pump(self):
        try:
            while data := await self.reader.read(MAX):
                await self.may_send.wait()
                self.may_send.clear()
                self.phone.send(WRTE, self.local, self.remote, data)
                await self.phone.writer.drain()
            await self.may_send.wait()
        except OSError:
            pass
        if self.phone.streams.pop(self.local, None):
            self.phone.send(CLSE, self.local, self.remote)
        self.close()

    def received(self, data):
        if self.writer:
            self.writer.write(data)
            asyncio.ensure_future(self.acknowledge())
        else:
            self.phone.send(OKAY, self.local, self.remote)

    async def acknowledge(self):
        try:
            await self.writer.drain()
        except OSError:
            pass
        self.phone.send(OKAY, self.local, self.remote)

    def close(self):
        if self.feeder:
            self.feeder.cancel()
        if self.log:
            print("logcat ends:", self.log, flush=True)
            self.log = None
        if self.writer:
            self.writer.close()


async def main():
    p = argparse.ArgumentParser()
    p.add_argument("port", type=int)
    p.add_argument("--address", default="127.0.0.1")
    p.add_argument("--serial", default="test", help="ro.serialno, which names the phone")
    p.add_argument("--model", default="Pixel_8")
    p.add_argument("--name", default="Pixel 8", help="the name that a person gave the phone")
    p.add_argument("--release", default="15", help="the version of Android")
    p.add_argument("--avd", default="", help="the name of the virtual device: all emulators of a version have one serial")
    p.add_argument("--boot-id", default="", help="the UUID of /proc/sys/kernel/random/boot_id; none unless given")
    p.add_argument("--logcat")
    p.add_argument("--apps", help="the file of the debuggable apps that run")
    p.add_argument("--forward", nargs="*", default=[])
    p.add_argument("--uid", type=int, default=10234, help="the user of the app that owns every listening socket")
    p.add_argument("--refuse-auth", action="store_true")
    p.add_argument("--hostile", choices=["garbage", "length", "endless"])
    p.add_argument("--old-logcat", action="store_true", help="a logcat without --uid, as before Android 12")
    o = p.parse_args()
    server = await asyncio.start_server(lambda r, w: Phone(o).serve(r, w), "127.0.0.1", o.port)
    print("listening", flush=True)
    async with server:
        await server.serve_forever()

asyncio.run(main())
