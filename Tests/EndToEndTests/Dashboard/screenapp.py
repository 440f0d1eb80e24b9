"""An app whose screen a person operates: an MCP server with tools to take a screenshot, tap, swipe and type.

A tap in a row of the screen marks the row. `hostile` gives its tools, results and links the texts of an attacker, and with
`slow` a screenshot takes 0.3 s. Prints "listening on PORT", and one line of JSON for each call; that of a screenshot says
how many are taken at the same time. With `picture` alone, writes the screen as a PNG and ends.
"""

import base64
import http.server
import json
import struct
import sys
import threading
import time
import zlib

WIDTH, HEIGHT, ROW, TOP = 390, 844, 112, 96
PALETTE = [(247, 247, 250), (32, 84, 147), (255, 255, 255), (214, 220, 228), (170, 178, 190), (224, 236, 250), (232, 146, 60),
           (46, 125, 80), (90, 98, 110)]
BACKGROUND, BAR, CARD, LINE, TEXT, MARKED, PICTURE, GOOD, DARK = range(9)
HOSTILE = "<img src=x onerror=alert(1)>\u202e\u001b[31m</script>"
NUMBERS = {"x": {"type": "number"}, "y": {"type": "number"}}
marked, typed = set(), []
screenshots, lock = 0, threading.Lock()


def png():
    """Returns the screen: a bar, rows with a picture and lines of text, and a button."""
    rows = [bytearray([BACKGROUND]) * WIDTH for _ in range(HEIGHT)]

    def box(x, y, width, height, colour):
        for row in rows[y:y + height]:
            row[x:x + width] = bytes([colour]) * width

    box(0, 0, WIDTH, TOP, BAR)
    box(20, 58, 150, 16, CARD)
    box(WIDTH - 60, 54, 40, 24, GOOD if marked else TEXT)
    for number in range(5):
        y = TOP + 14 + number * ROW
        box(14, y, WIDTH - 28, ROW - 14, MARKED if number in marked else CARD)
        box(26, y + 12, 74, 74, PICTURE if number % 2 else BAR)
        box(116, y + 16, 120 + number % 3 * 34, 13, DARK)
        box(116, y + 40, 190 - number % 2 * 30, 9, TEXT)
        box(116, y + 58, 90, 9, TEXT)
        box(WIDTH - 66, y + 60, 38, 22, GOOD if number in marked else LINE)
    box(20, HEIGHT - 128, WIDTH - 40, 44, CARD)
    box(32, HEIGHT - 112, min(len("".join(typed)) * 9, WIDTH - 64) or 80, 12, DARK if typed else LINE)
    box(20, HEIGHT - 68, WIDTH - 40, 48, BAR)
    box(145, HEIGHT - 51, 100, 14, CARD)

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 3, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 6)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"PLTE", bytes(sum(PALETTE, ())))
            + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))


def tools():
    def tool(name, properties, description, **more):
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        return {"name": name, "description": description, "inputSchema": schema, **more}

    ends = {name: {"type": "number"} for name in ("from_x", "from_y", "to_x", "to_y")}
    found = [tool("screenshot", {}, "Takes a picture", annotations={"readOnlyHint": True}),
             tool("tap", NUMBERS, "Taps a point, in pixels"), tool("swipe", ends, "Swipes between points, in pixels"),
             tool("type_text", {"text": {"type": "string"}}, "Types a text; backspace, delete and arrows are keys"),
             tool("cart", {"count": {"type": "integer", "description": "How many"}, "note": {"type": "string"}}, "Fills the cart")]
    if is_hostile:
        for one in found:
            one["description"] = HOSTILE
        found[-1]["inputSchema"]["properties"]["count"]["description"] = HOSTILE
    return found


def call(name, arguments):
    if name == "screenshot":
        return [screenshot()]
    print(json.dumps({"tool": name, "arguments": arguments}), flush=True)
    if name == "tap":
        marked.symmetric_difference_update({int((arguments["y"] - TOP - 14) // ROW)})
    if name == "type_text":
        for character in arguments["text"]:
            typed.append(character) if character != "\b" else typed and typed.pop()
    if is_hostile:
        link = {"type": "resource_link", "uri": "javascript:alert(1)", "name": HOSTILE}
        return [link, {"type": "text", "text": HOSTILE + "x" * 10_000}]
    return [{"type": "text", "text": json.dumps({"done": name, "cart": len(marked)})}]


def screenshot():
    global screenshots
    with lock:
        screenshots += 1
        print(json.dumps({"tool": "screenshot", "at once": screenshots}), flush=True)
    time.sleep(0.3 if is_slow else 0)
    image = {"type": "image", "data": base64.b64encode(png()).decode(), "mimeType": "image/png"}
    with lock:
        screenshots -= 1
    return image


class App(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, params = request.get("method"), request.get("params") or {}
        answers = {
            "initialize": lambda: {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                   "serverInfo": {"name": HOSTILE if is_hostile else "Shop", "version": "1.4.0"}},
            "tools/list": lambda: {"tools": tools()},
            "tools/call": lambda: {"content": call(params["name"], params.get("arguments") or {})},
        }
        if "id" not in request:
            return self.reply(202, b"")
        result = answers.get(method, dict)()
        self.reply(200, json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode())

    def do_GET(self):
        self.reply(405, b"")

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


if sys.argv[1:] == ["picture"]:
    sys.stdout.buffer.write(png())
    sys.exit()
is_hostile, is_slow = "hostile" in sys.argv[1:], "slow" in sys.argv[1:]
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), App)
print("listening on", server.server_port, flush=True)
server.serve_forever()
