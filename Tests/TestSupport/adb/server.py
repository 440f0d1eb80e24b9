#!/usr/bin/env python3
"""A fake adb server on a unix socket, for states of phones that need USB, and for servers that no program should trust.

    server.py SOCKET --devices FILE [--versions 0029,0027 --life 0.5] [--hostile MODE]

FILE is the text of `host:devices-l`, which is sent again at each change of the file. No service of a phone is answered.
With --life the server closes all connections after so many seconds, and comes back with the next of the versions: two
programs whose adb replace each other's server. The modes:
  garbage   answers each request with random bytes
  truncated answers each request with OKAY, a length of 65,535, and a byte each second
  lists     sends a list of 600 other phones again and again
  endless   all phones are ready, and each of their services sends without end: records of track-app, packets of 4 GB of
            the shell, or plain output
"""
import argparse, asyncio, os, struct


class Server:
    def __init__(self, o):
        self.o, self.versions, self.run, self.writers = o, o.versions.split(","), 0, set()

    def devices(self):
        return open(self.o.devices, "rb").read()

    async def serve(self, reader, writer):
        self.writers.add(writer)
        try:
            while True:
                service = (await reader.readexactly(int(await reader.readexactly(4), 16))).decode()
                await getattr(self, self.o.hostile or "answer")(service, writer)
                if not service.startswith("host:transport"):
                    break
        except (asyncio.IncompleteReadError, OSError, ValueError):
            pass
        finally:
            self.writers.discard(writer)
            writer.close()

    async def send(self, writer, *parts):
        for part in parts:
            writer.write(part)
        await writer.drain()

    async def answer(self, service, writer):
        if service == "host:version":
            await self.send(writer, b"OKAY", text(self.versions[self.run % len(self.versions)].encode()))
        elif service == "host:devices-l":
            await self.send(writer, b"OKAY", text(self.devices()))
        elif service == "host:track-devices-l":
            await self.send(writer, b"OKAY")
            last = None
            while not writer.is_closing():
                if (now := self.devices()) != last:
                    await self.send(writer, text(now))
                last = now
                await asyncio.sleep(0.02)
        elif service.startswith("host:transport"):
            await self.send(writer, b"OKAY")
        else:
            await self.send(writer, b"FAIL", text(b"closed"))

    async def garbage(self, service, writer):
        await self.send(writer, os.urandom(65536))

    async def truncated(self, service, writer):
        await self.send(writer, b"OKAY", b"ffff")
        while not writer.is_closing():
            await self.send(writer, b"x")
            await asyncio.sleep(1)

    async def lists(self, service, writer):
        if service != "host:track-devices-l":
            return await self.answer(service, writer)
        await self.send(writer, b"OKAY")
        count = 0
        while True:
            count += 1
            await self.send(writer, text(b"".join(b"P%dx%d unauthorized usb:1-1 transport_id:%d\n" % (n, count, n + 1) for n in range(600))))

    async def endless(self, service, writer):
        if service.startswith("host:"):
            return await self.answer(service, writer)
        await self.send(writer, b"OKAY")
        part, count = b"x" * 65536, 0
        if service.startswith("shell,v2"):
            await self.send(writer, struct.pack("<BI", 1, 0xFFFFFFFF))
        while True:
            if service == "track-app":
                # Another process in each record: field 1 has an entry, whose field 1 is the number of the process.
                count = (count + 1) % 128
                part = text(bytes([10, 3, 8, 0x80 | count, 0x20])) * 1000
            await self.send(writer, part)


def text(data):
    return b"%04x" % len(data) + data


async def main():
    p = argparse.ArgumentParser()
    p.add_argument("socket")
    p.add_argument("--devices", required=True)
    p.add_argument("--versions", default="0029")
    p.add_argument("--life", type=float)
    p.add_argument("--hostile", choices=["garbage", "truncated", "lists", "endless"])
    o = p.parse_args()
    state = Server(o)
    server = await asyncio.start_unix_server(state.serve, o.socket, backlog=128)
    print("listening", flush=True)
    async with server:
        while o.life:
            await asyncio.sleep(o.life)
            state.run += 1
            for writer in list(state.writers):
                writer.close()
        await server.serve_forever()

asyncio.run(main())
