#!/usr/bin/env python3
"""A stand-in for an app that serves newline-delimited MCP over TCP (`_mcp._tcp`): one connection is one session.

--like swiftmcp imitates SwiftMCP. It rejects requests before `initialize` unless they contain their protocol version (2026-07-28),
ignores lines that are not JSON-RPC, and processes the lines of one read in order, with cancelled calls first. --like imcp imitates
iMCP (MCP's Swift SDK). It supports only the handshake, rejects unknown methods, and sends twelve bytes without a line end in
between: a heart and a time.

Prints "listening on PORT", then "greeted: METHOD" for each session and "call: TOOL" for each tool call.
"""
import argparse
import asyncio
import json
import os
import struct
import time

STATELESS = "2026-07-28"
LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
META = "io.modelcontextprotocol/"
TOOLS = [
    {"name": "launch_context", "description": "Who this is", "inputSchema": {"type": "object"},
     "annotations": {"readOnlyHint": True}},
    {"name": "steps", "description": "Tells its progress", "inputSchema": {"type": "object"}},
    {"name": "tap_element", "description": "Taps", "inputSchema": {"type": "object"}},
    {"name": "wait", "inputSchema": {"type": "object", "properties": {"seconds": {"type": "number"}}}},
]


def say(line):
    print(line, flush=True)


class Session:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.is_greeted = False
        self.running = {}

    async def serve(self):
        beating = asyncio.create_task(self.beat()) if options.like == "imcp" else None
        try:
            while line := await self.reader.readline():
                try:
                    message = json.loads(line)
                except ValueError:
                    continue
                if isinstance(message, dict) and "method" in message:
                    self.take(message)
        except (ConnectionError, ValueError):
            pass
        finally:
            # The call of a disconnected client is stopped.
            for task in [*self.running.values(), *([beating] if beating else [])]:
                task.cancel()
            self.writer.close()

    def take(self, message):
        number, params = message.get("id"), message.get("params") or {}
        if message["method"] == "notifications/cancelled":
            if task := self.running.pop(params.get("requestId"), None):
                task.cancel()
                say("cancelled")
        elif number is not None:
            self.running[number] = asyncio.create_task(self.answer(number, message["method"], params))

    async def answer(self, number, method, params):
        meta = params.get("_meta") or {}
        is_modern = options.like == "swiftmcp" and meta.get(META + "protocolVersion") == STATELESS
        if not self.is_greeted and not is_modern and method != "initialize" and options.like == "swiftmcp":
            self.send(number, error={"code": -32000, "message": "Session not initialized. Send initialize first."})
        elif method == "initialize":
            self.is_greeted = True
            say("greeted: initialize")
            wanted = params.get("protocolVersion")
            self.send(number, {
                "protocolVersion": wanted if wanted in LEGACY else LEGACY[-1], "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "lineapp", "version": options.version}})
        elif method == "server/discover" and is_modern:
            say("greeted: server/discover")
            self.send(number, {
                "resultType": "complete", "supportedVersions": LEGACY + [STATELESS], "ttlMs": 0, "cacheScope": "private",
                "capabilities": {"tools": {}}, "_meta": {META + "serverInfo": {"name": "lineapp", "version": options.version}}})
        elif method == "tools/list":
            more = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if is_modern else {}
            self.send(number, {"tools": TOOLS, **more})
        elif method == "tools/call":
            text = await self.run(params.get("name"), params.get("arguments") or {}, meta.get("progressToken"))
            more = {"resultType": "complete"} if is_modern else {}
            self.send(number, {"content": [{"type": "text", "text": text}], **more})
        elif method == "ping":
            self.send(number, {})
        else:
            self.send(number, error={"code": -32601, "message": "Method not found"})
        self.running.pop(number, None)

    async def run(self, name, arguments, token):
        say("call: %s" % name)
        if name == "wait":
            await asyncio.sleep(float(arguments.get("seconds", 1)))
        if name == "steps" and token is not None:
            for step in range(3):
                await asyncio.sleep(0.05)
                self.write({"jsonrpc": "2.0", "method": "notifications/progress",
                            "params": {"progressToken": token, "progress": step + 1, "total": 3}})
        return json.dumps({"called": name, "version": options.version, "pid": os.getpid()})

    def send(self, number, result=None, error=None):
        self.write({"jsonrpc": "2.0", "id": number, **({"result": result} if error is None else {"error": error})})

    def write(self, message):
        self.writer.write(json.dumps(message).encode() + b"\n")

    async def beat(self):
        while True:
            await asyncio.sleep(options.beat)
            # Milliseconds since 2001 in memory order; one of the bytes may be a line end.
            moment = int((time.time() - 978_307_200) * 1000) & ~0xFF00 | 0x0A00
            self.writer.write(b"\xf0\x9f\x92\x93" + struct.pack("<Q", moment))


async def main():
    last = None

    async def serve(reader, writer):
        nonlocal last
        if options.single and last is not None:
            last.close()
        last = writer
        await Session(reader, writer).serve()

    server = await asyncio.start_server(serve, options.address, options.port, limit=1 << 26)
    say("listening on %d" % server.sockets[0].getsockname()[1])
    async with server:
        await server.serve_forever()


parser = argparse.ArgumentParser()
parser.add_argument("--address", default="127.0.0.1")
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--version", default="3.2.0")
parser.add_argument("--like", choices=["swiftmcp", "imcp"], default="swiftmcp")
parser.add_argument("--single", action="store_true", help="one client, which the next one replaces (Codename One's)")
parser.add_argument("--beat", type=float, default=0.05, help="seconds between two heartbeats; the SDK's own are 15")
options = parser.parse_args()
asyncio.run(main())
