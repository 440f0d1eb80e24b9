#!/usr/bin/env python3
"""A stand-in for an app with AppReveal: MCP over HTTP with the behavior of that server's platforms and versions.

Common to all: POST works at any path, GET only at /health, a notification gets 204 instead of 202, there are no sessions and no
streams, the protocol version is always 2025-06-18, and the order of the tools differs between launches. HABITS has the differences.
Prints "listening on PORT" when it is ready, and before that, if it requires a token, the session URL in AppReveal's format. Then
prints "request: …" for each request, and "call: TOOL" with the requested format for each tool call. A call with the argument
`stall` is answered with so many bytes, and then no more ("stalled").

The mode "mcp" is any other MCP server, which answers only at /mcp. `--role NAME` as the first argument plays another kind of app
(ROLES), and the other arguments are those of its script.
"""
import argparse
import base64
import dataclasses
import gzip
import hmac
import http.server
import itertools
import json
import os
import random
import runpy
import secrets
import socket
import struct
import sys
import time
import urllib.parse
import zlib


@dataclasses.dataclass
class Habits:
    version: str
    health: dict
    name: str = "AppReveal"
    # The only path; None for every path.
    path: str | None = None
    # The status of the response to a notification.
    noted: int = 204
    wants_token: bool = True
    unauthorized: int = -32603
    closes: bool = False
    chunks: bool = False
    zips: bool = False
    pings: bool = False
    minds_origin: bool = False
    # The seconds after which an idle connection is closed; None for no limit.
    idle: float | None = None
    escapes_slashes: bool = False
    unreadable: tuple = (400, -32700)
    other_method: dict | None = None
    # The line of the log with the session URL.
    line: str = "[AppReveal] Session URL: %s"


HABITS = {
    "ios-0.9": Habits("0.9.1", {"bonjour": "advertising"}, wants_token=False, closes=True, unreadable=(200, -32700),
                      other_method={"error": "Method not allowed"}),
    # NWListener: closes after one response. JSONEncoder: \/ for a slash.
    "ios": Habits("0.10.1", {"auth": "session-token", "bonjour": "advertising",
                             "bonjourDiagnostics": {"status": "advertising", "retryAttempt": 0, "maxRetryAttempts": 5},
                             "lan": {"pathStatus": "satisfied", "pathInterfaces": ["en0"], "interfaces": [], "warnings": []}},
                  closes=True, minds_origin=True, escapes_slashes=True),
    # NanoHTTPD: keeps the connection open and compresses if the client accepts it.
    "android": Habits("0.10.1", {"auth": "session-token", "discovery": "android-nsd"}, zips=True, idle=5, unreadable=(500, -32603),
                      other_method={"error": "Only POST is supported"},
                      line="11-22 04:43:23.123  4711  4733 I AppReveal: Session URL: %s"),
    # dart:io: chunked encoding without a length.
    "flutter": Habits("0.10.1", {"auth": "session-token", "discovery": "dart-mdns"}, unauthorized=-32001, chunks=True),
    # HttpListener.
    "windows": Habits("0.10.1", {"auth": "session-token", "discovery": "optional-provider"}, unauthorized=-32001, pings=True,
                      minds_origin=True),
    # Rust, on loopback.
    "tauri": Habits("0.10.1", {"auth": "session-token", "discovery": "optional-mdns"}, minds_origin=True,
                    line="[AppReveal] Tauri MCP listening at %s"),
    # Made with an official SDK.
    "mcp": Habits("1.0.0", {}, name="shop-tools", path="/mcp", noted=202, wants_token=False, pings=True),
}
# The scripts that play other kinds of apps.
ROLES = {"app-debug": "appdebug.py", "dart-vm": "dartvm.py", "debug": "statedebug.py", "debugbridge": "debugbridge.py",
         "devicekit": "devicekit.py", "line-mcp": "lineapp.py", "mobilecli": "mobilecli.py", "openagents": "openagents.py",
         "simlock": "simlock.py", "webdriveragent": "webdriveragent.py"}
CALLS = itertools.count()
LARGEST = 1 << 20


def tool(name, **properties):
    schema = {"type": "object", "properties": {
        key: kind if isinstance(kind, dict) else {"type": kind} for key, kind in properties.items()}}
    return {"name": name, "description": name.replace("_", " "), "inputSchema": schema}


FORMAT = {"type": "string", "enum": ["png", "jpeg"], "description": "Image format (default: png)"}


TOOLS = [tool("launch_context"), tool("get_screen"), tool("get_elements"), tool("tap_element", element_id="string"),
         tool("screenshot", format=FORMAT, element_id="string"), tool("get_state"),
         # A tool that AppReveal does not have.
         tool("wait", seconds="number")]


class App(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Sends head and body in one segment, like the real servers.
    disable_nagle_algorithm = True
    wbufsize = -1

    def setup(self):
        self.timeout = habits.idle
        super().setup()

    def do_GET(self):
        if self.route() != "/health" or habits.path:
            return self.reply(405, habits.other_method)
        boot = {"boot": options.boot} if options.boot else {}
        name = {"bundleId": options.bundle} if options.named else {}
        self.reply(200, {"status": "ok", "port": self.server.server_port, **habits.health, **boot, **name})

    def do_OPTIONS(self):
        self.reply(204)

    def do_POST(self):
        if habits.minds_origin and not self.is_loopback(self.headers.get("Origin")):
            return self.reply(403)
        if "Content-Length" not in self.headers:
            self.close_connection = True
            return self.reply(400)
        length = int(self.headers["Content-Length"])
        if length > LARGEST:
            self.close_connection = True
            return self.reply(413)
        body = self.rfile.read(length)
        if habits.path not in (None, self.route()):
            return self.reply(404)
        if habits.wants_token and not self.has_token():
            return self.reply(401, answer(None, error={"code": habits.unauthorized, "message": "Unauthorized"}))
        try:
            request = json.loads(body)
            method, number = request["method"], request.get("id")
        except (ValueError, KeyError, TypeError):
            status, code = habits.unreadable
            return self.reply(status, answer(None, error={"code": code, "message": "Parse error"}))
        if number is None:
            return self.reply(habits.noted)
        stalled = ((request.get("params") or {}).get("arguments") or {}).get("stall")
        if stalled:
            return self.stall(int(stalled))
        self.reply(200, self.call(number, method, request.get("params") or {}))

    def stall(self, size):
        """Sends the first half of an answer of twice this size, and then nothing while the client stays."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(2 * size))
        self.end_headers()
        self.wfile.write(b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"' + b"x" * size)
        self.wfile.flush()
        say("stalled")
        try:
            self.connection.settimeout(60)
            self.connection.recv(1)
        except OSError:
            pass

    def call(self, number, method, params):
        if method == "initialize":
            return answer(number, {
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": habits.name, "version": habits.version}})
        if method == "tools/list":
            return answer(number, {"tools": TOOLS})
        if method == "ping" and habits.pings:
            return answer(number, {})
        if method == "tools/call" and next(CALLS) < options.shy:
            return answer(number, error={"code": -32000, "message": "The app is still starting"})
        name = params.get("name")
        if method == "tools/call" and any(tool["name"] == name for tool in TOOLS):
            arguments = params.get("arguments") or {}
            trace = [holder.get(key) for holder in (self.headers, params.get("_meta") or {}) for key in ("traceparent", "tracestate")]
            if any(trace):
                say("trace: headers %s %s, _meta %s %s" % tuple(trace))
            say("call: %s %s" % (name, arguments["format"]) if "format" in arguments else "call: %s" % name)
            return answer(number, run(name, arguments))
        return answer(number, error={"code": -32601, "message": "Method not found"})

    def route(self):
        return self.path.split("?")[0]

    def has_token(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        scheme, _, bearer = self.headers.get("Authorization", "").partition(" ")
        if bearer:
            say("token: " + bearer)
        shown = [bearer if scheme.lower() == "bearer" else "", self.headers.get("X-AppReveal-Session", ""),
                 query.get("appreveal_session_token", [""])[0]]
        return any(hmac.compare_digest(token.encode(), options.token.encode()) for token in shown)

    @staticmethod
    def is_loopback(origin):
        host = origin and (urllib.parse.urlsplit(origin).hostname or "")
        return origin is None or host in ("localhost", "::1") or host.startswith("127.")

    def reply(self, status, value=None):
        body = b"" if value is None else json.dumps(value).encode()
        if habits.escapes_slashes and self.command == "POST":
            body = body.replace(b"/", b"\\/")
        zips = habits.zips and body and "gzip" in self.headers.get("Accept-Encoding", "")
        self.send_response(status)
        if value is not None:
            self.send_header("Content-Type", "application/json")
        if zips:
            self.send_header("Content-Encoding", "gzip")
            body = gzip.compress(body)
        if zips or habits.chunks and body:
            self.send_header("Transfer-Encoding", "chunked")
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        else:
            self.send_header("Content-Length", str(len(body)))
        if habits.closes:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *arguments):
        say("request: %s" % " ".join(str(part) for part in arguments[1:]))


def say(line):
    """Prints a line in one write, because several threads print."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def answer(number, result=None, error=None):
    outcome = {"result": result} if error is None else {"error": error}
    # Swift and Gson omit nil members, Dart and .NET write them.
    identity = {} if number is None and options.mode in ("ios", "android") else {"id": number}
    return {"jsonrpc": "2.0", **identity, **outcome}


def run(name, arguments):
    if name == "screenshot":
        return screenshot(arguments.get("format", "png"))
    if name == "wait":
        label = arguments.get("label")
        if label:
            say("begin: " + label)
        time.sleep(float(arguments.get("seconds", 1)))
        if label:
            say("end: " + label)
    facts = {"bundleId": options.bundle, "version": options.version, "platform": options.mode.split("-")[0], "called": name}
    if name == "tap_element":
        if arguments.get("element_id") == "missing":
            return failure("Element not found: missing")
        facts["tapped"] = arguments.get("element_id")
    return {"content": [{"type": "text", "text": json.dumps(facts)}], "isError": False}


def failure(text):
    return {"content": [{"type": "text", "text": json.dumps({"error": text})}], "isError": True}


def screenshot(kind):
    if kind not in ("png", "jpeg"):
        return failure("Screenshot returned invalid image data or format")
    (width, height), drawn = options.screen, None
    if options.picture and kind == "png":
        with open(options.picture, "rb") as file:
            drawn = file.read()
        width, height = struct.unpack(">II", drawn[16:24])
    facts = {"width": width, "height": height, "scale": 3.0, "format": kind}
    drawn = drawn or (picture if kind == "png" else photograph)(width, height)
    data = base64.b64encode(drawn).decode()
    image = {"type": "image", "data": data, "mimeType": "image/" + kind}
    return {"content": [image, {"type": "text", "text": json.dumps(facts)}], "structuredContent": facts}


def picture(width, height):
    """Returns a PNG of a noisy gradient, as large as a screenshot full of photographs."""
    noise = random.Random(1).randbytes(width * 3)
    rows = bytearray()
    for y in range(height):
        shift = y * 7 % len(noise)
        rows += b"\0" + bytes(byte & 0x3F | y & 0xC0 for byte in noise[shift:] + noise[:shift])

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(rows), 1)) + chunk(b"IEND", b"")


def photograph(width, height):
    """Returns a minimal grey JPEG with one brightness per 8x8 block (ITU-T T.81)."""
    # Codes for the DC differences between blocks by their length in bits (T.81, table K.3).
    codes = ["00", "010", "011", "100", "101", "110", "1110", "11110", "111110"]
    noise, bits, last = random.Random(1), [], 0
    for _ in range((width + 7) // 8 * ((height + 7) // 8)):
        level = noise.randrange(-100, 100)
        step, last = level - last, level
        length = abs(step).bit_length()
        # A negative difference is written minus one. The block has no AC coefficients: their code is one bit.
        bits.append(codes[length] + (format(step if step > 0 else step + (1 << length) - 1, "0%db" % length) if length else "") + "0")
    text = "".join(bits)
    text += "1" * (-len(text) % 8)
    body = int(text, 2).to_bytes(len(text) // 8, "big").replace(b"\xff", b"\xff\0")

    def segment(mark, data):
        return struct.pack(">BBH", 0xFF, mark, len(data) + 2) + data

    counts = bytes([0, 1, 5, 1, 1, 1] + [0] * 10)
    return (b"\xff\xd8" + segment(0xDB, b"\0" + b"\x08" * 64) + segment(0xC0, struct.pack(">BHHBBBB", 8, height, width, 1, 1, 0x11, 0))
            + segment(0xC4, b"\0" + counts + bytes(range(9))) + segment(0xC4, b"\x10" + bytes([1] + [0] * 15) + b"\0")
            + segment(0xDA, bytes([1, 1, 0, 0, 63, 0])) + body + b"\xff\xd9")


def size(text):
    width, height = text.split("x")
    return int(width), int(height)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def process_request(self, request, address):
        if options.sequential:
            return http.server.HTTPServer.process_request(self, request, address)
        super().process_request(request, address)


if sys.argv[1:2] == ["--role"]:
    role = "".join(sys.argv[2:3])
    if role not in ROLES:
        sys.exit("sampleapp.py: there is no role %r; the roles are %s" % (role, ", ".join(ROLES)))
    script = ROLES[role]
    del sys.argv[1:3]
    runpy.run_path(os.path.join(os.path.dirname(__file__), script), run_name="__main__")
    sys.exit()
parser = argparse.ArgumentParser()
parser.add_argument("--address", default="127.0.0.1")
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--bundle", default="com.example.shop")
parser.add_argument("--version", default="3.2.0")
parser.add_argument("--shy", type=int, default=0, help="how many calls it answers with an error first")
parser.add_argument("--mode", choices=HABITS, default="ios-0.9")
parser.add_argument("--token", default=secrets.token_hex(32), help="its session token, where the mode wants one")
parser.add_argument("--boot", default="", help="what its health and its advert call this launch")
parser.add_argument("--named", action="store_true", help="its health names its bundle")
parser.add_argument("--picture", help="a PNG that its screenshots are")
parser.add_argument("--screen", type=size, default=(60, 130), help="the pixels of its screenshots, 1290x2796")
parser.add_argument("--sequential", action="store_true",
                    help="one connection at a time: threads of Python's take milliseconds to be woken now and then")
options = parser.parse_args()
habits = HABITS[options.mode]
random.shuffle(TOOLS)
server = Server((options.address, options.port), App)
if habits.wants_token:
    url = "http://127.0.0.1:%d/?appreveal_session_token=%s" % (server.server_port, options.token)
    print(habits.line % url, flush=True)
print("listening on", server.server_port, flush=True)
server.serve_forever()
