#!/usr/bin/env python3
"""A simulated Android phone: the device side of the adb transport protocol (AOSP `packages/modules/adb/protocol.txt`) over TCP.

    phone.py PORT [--address 127.0.0.1] [--serial test] [--model Pixel_8] [--name "Pixel 8"] [--release 15] [--logcat FILE]
             [--forward NAME=PORT ...] [--uid 10234] [--refuse-auth]

The real adb server connects with `adb connect 127.0.0.1:PORT`, or with `host:emulator:PORT`. Services of the phone:
  tcp:N                 connects to ADDRESS:N, which plays the phone's loopback
  localabstract:NAME    connects to ADDRESS:PORT of `--forward NAME=PORT`
  shell:getprop KEY, shell:settings get global device_name, shell:logcat …, shell:cat /proc/net/tcp
                        canned answers; with shell,v2 in its packets. Commands with `;` between them are answered in order.
One WRTE of a stream is in flight until its OKAY, as the protocol demands. SIGTERM ends the phone, which is an unplug.
"""
import argparse, asyncio, os, struct, sys

CNXN, AUTH, OPEN, OKAY, WRTE, CLSE = (int.from_bytes(c, "little") for c in (b"CNXN", b"AUTH", b"OPEN", b"OKAY", b"WRTE", b"CLSE"))
VERSION, MAX = 0x01000001, 256 * 1024


class Phone:
    def __init__(self, o):
        self.o, self.streams, self.next = o, {}, 1

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
            writer.close()

    def send(self, command, a, b, data=b""):
        # From version 0x01000001 on, the checksum is not looked at.
        self.writer.write(struct.pack("<6I", command, a, b, len(data), sum(data) & 0xFFFFFFFF if len(data) < 4096 else 0, command ^ 0xFFFFFFFF) + data)

    async def handle(self, command, a, b, data):
        if command == CNXN:
            if self.o.refuse_auth:
                return self.send(AUTH, 1, 0, os.urandom(20))
            banner = f"device::ro.product.name={self.o.model};ro.product.model={self.o.model};ro.product.device=test;features=shell_v2,cmd"
            self.send(CNXN, VERSION, MAX, banner.encode())
        elif command == AUTH:
            self.send(AUTH, 1, 0, os.urandom(20))
        elif command == OPEN:
            await self.open(a, data.rstrip(b"\0").decode())
        elif command == OKAY and b in self.streams:
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

    def answer(self, service):
        kind, _, rest = service.partition(":")
        out = b"".join(self.output(command.strip()) for command in rest.split(";"))
        # shell,v2 sends packets: id 1 is stdout, id 3 is the exit code.
        return out if "v2" not in kind else struct.pack("<BI", 1, len(out)) + out + struct.pack("<BIB", 3, 1, 0)

    def output(self, rest):
        if rest.startswith("getprop"):
            key = rest.removeprefix("getprop").strip()
            values = {
                "ro.product.model": self.o.model.replace("_", " "),
                "ro.serialno": self.o.serial,
                "ro.build.version.release": self.o.release,
            }
            text = values.get(key, "")
        elif rest == "settings get global device_name":
            text = self.o.name
        elif rest.startswith("logcat"):
            text = open(self.o.logcat).read() if self.o.logcat else ""
        elif "/proc/net/tcp" in rest:
            text = self.sockets()
        else:
            text = f"/system/bin/sh: {rest}: not found"
        return text.encode() + b"\n"

    def sockets(self):
        """/proc/net/tcp of the phone: only its own sockets, on its loopback, owned by the app's user."""
        mine = "".join(f"{int(b):02X}" for b in reversed(self.o.address.split(".")))
        head, *lines = open("/proc/net/tcp").read().splitlines()
        rows = [line.replace(mine, "0100007F").split() for line in lines if line.split()[1].startswith(mine)]
        return "\n".join([head] + ["  ".join(row[:7] + [str(self.o.uid)] + row[8:]) for row in rows])


class Stream:
    def __init__(self, phone, local, remote):
        self.phone, self.local, self.remote = phone, local, remote
        self.may_send, self.writer, self.reader = asyncio.Event(), None, None
        self.may_send.set()

    async def start(self, service):
        kind, _, rest = service.partition(":")
        if kind == "tcp":
            self.reader, self.writer = await asyncio.open_connection(self.phone.o.address, int(rest))
        elif kind == "localabstract":
            ports = dict(f.split("=") for f in self.phone.o.forward)
            if rest not in ports:
                raise OSError("no such name")
            self.reader, self.writer = await asyncio.open_connection(self.phone.o.address, int(ports[rest]))
        elif kind.split(",")[0] in ("shell", "exec"):
            self.reader = asyncio.StreamReader()
            self.reader.feed_data(self.phone.answer(service))
            self.reader.feed_eof()
        else:
            raise OSError("unknown service")

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
    p.add_argument("--logcat")
    p.add_argument("--forward", nargs="*", default=[])
    p.add_argument("--uid", type=int, default=10234, help="the user of the app that owns every listening socket")
    p.add_argument("--refuse-auth", action="store_true")
    o = p.parse_args()
    server = await asyncio.start_server(lambda r, w: Phone(o).serve(r, w), "127.0.0.1", o.port)
    print("listening", flush=True)
    async with server:
        await server.serve_forever()

asyncio.run(main())
