#!/usr/bin/env python3
"""A stand-in for mobile-next's DeviceKit (github.com/mobile-next/devicekit-ios, commit 88c38aa): JSON-RPC at `POST /rpc`.

Bodies have the bytes that Swift's JSONEncoder makes: no spaces, `\\/` for a slash, no member for nil, and 390 for 390.0. JSONEncoder
leaves the order of members open. Errors have the status 200. Unknown parameters are ignored. The server closes the connection after
each response, without a header that says so, unless the request has `Connection: keep-alive` (FlyingFox 0.22).

Prints "listening on PORT", and "request: " with the bytes of each request as a JSON text.
"""
import argparse
import json
import socketserver

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
# The texts of Swift's DecodingError.
MISSING = "The data couldn’t be read because it is missing."
MALFORMED = "The data couldn’t be read because it isn’t in the correct format."
BUTTONS = ("home", "lock", "volumeUp", "volumeDown")
SPRINGBOARD = "com.apple.springboard"
RECT = {"x": 20, "y": 700, "width": 350, "height": 50}


class Failure(Exception):
    def __init__(self, code, message):
        self.error = {"code": code, "message": message}


def number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def integer(value):
    return number(value) and value == int(value)


def text(value):
    return isinstance(value, str)


def optional(check):
    return lambda value: value is None or check(value)


def button(value):
    return value in BUTTONS


def actions(value):
    kinds = {"type": text, "duration": number, "x": number, "y": number, "button": integer}
    return isinstance(value, list) and all(
        isinstance(action, dict) and all(check(action.get(key)) for key, check in kinds.items()) for action in value)


class Phone:
    """The state of the phone, and the methods."""
    running, orientation = [SPRINGBOARD, "com.example.shop"], "PORTRAIT"

    def info(self):
        return {"screenSize": {"width": 390, "height": 844}, "scale": 3}

    def screenshot(self, format, quality):
        if format.lower() == "png":
            return {"format": format, "data": "data:image/%s;base64,%s" % (format, PICTURE)}
        if format.lower() in ("jpg", "jpeg"):
            raise Failure(-32603, "Failed to encode screenshot in format: " + format)
        raise Failure(-32602, "Unsupported image format: " + format)

    def dump(self, format):
        if (format or "").lower() == "raw":
            frame = {"X": 0, "Y": 0, "Width": 390, "Height": 844}
            return {"identifier": "", "frame": frame, "label": "", "elementType": 0, "enabled": False,
                    "horizontalSizeClass": 0, "verticalSizeClass": 0, "selected": False, "hasFocus": False, "children": [],
                    "windowContextID": 0, "displayID": 0}
        buy = {"type": "XCUIElementTypeButton", "label": "Buy", "name": "buy", "rawIdentifier": "buy", "rect": RECT}
        return {"type": "XCUIElementTypeAny", "rect": {"x": 0, "y": 0, "width": 0, "height": 0}, "children": [buy]}

    def open(self, url):
        # URL(string:) returns nil for an empty text.
        if not url:
            raise Failure(-32602, "Invalid URL format: '%s'" % url)
        return self.done()

    def foreground(self):
        return {"bundleId": self.running[-1], "name": self.running[-1].split(".")[-1], "pid": 7}

    def launch(self, bundleId):
        self.running = [app for app in self.running if app != bundleId] + [bundleId]
        return self.done()

    def terminate(self, bundleId):
        is_running = bundleId in self.running
        self.running = [app for app in self.running if app != bundleId] or [SPRINGBOARD]
        return {"terminated": is_running}

    def turn(self, orientation):
        if orientation.upper() not in ("PORTRAIT", "LANDSCAPE"):
            raise Failure(-32602, "Invalid orientation '%s', must be 'PORTRAIT' or 'LANDSCAPE'" % orientation)
        self.orientation = orientation.upper()
        return self.done()

    def gesture(self, actions):
        if not actions:
            raise Failure(-32602, "Actions array cannot be empty")
        return self.done()

    def done(self, **parameters):
        return {"success": True}


phone = Phone()
METHODS = {
    "device.info": (phone.info, {}),
    "device.screenshot": (phone.screenshot, {"format": text, "quality": optional(integer)}),
    "device.dump.ui": (phone.dump, {"format": optional(text)}),
    "device.url": (phone.open, {"url": text}),
    "device.apps.foreground": (phone.foreground, {}),
    "device.apps.launch": (phone.launch, {"bundleId": text}),
    "device.apps.terminate": (phone.terminate, {"bundleId": text}),
    "device.io.tap": (phone.done, {"x": number, "y": number}),
    "device.io.longpress": (phone.done, {"x": number, "y": number, "duration": number}),
    "device.io.swipe": (phone.done, {key: integer for key in ("x1", "y1", "x2", "y2")}),
    "device.io.text": (phone.done, {"text": text}),
    "device.io.button": (phone.done, {"button": button}),
    "device.io.gesture": (phone.gesture, {"actions": actions}),
    "device.io.orientation.get": (lambda: {"orientation": phone.orientation}, {}),
    "device.io.orientation.set": (phone.turn, {"orientation": text}),
}


def run(method, given):
    if method not in METHODS:
        raise Failure(-32601, "Method not found")
    call, parameters = METHODS[method]
    given = {} if given is None else given
    if parameters and not isinstance(given, dict):
        raise Failure(-32602, "Invalid parameters: " + MALFORMED)
    for key, check in parameters.items():
        if not check(given.get(key)):
            raise Failure(-32602, "Invalid parameters: " + (MISSING if given.get(key) is None else MALFORMED))
    return call(**{key: given.get(key) for key in parameters})


def respond(body):
    """Returns the body of the response."""
    identity = {}
    try:
        request = json.loads(body)
        if request.get("id") is not None:
            identity = {"id": request["id"]}
        is_request = text(request["jsonrpc"]) and text(request["method"])
        if not is_request or not (text(request.get("id")) or integer(request.get("id")) or request.get("id") is None):
            raise ValueError
    except (ValueError, KeyError, AttributeError):
        identity, outcome = {}, {"error": {"code": -32700, "message": "Parse error"}}
    else:
        try:
            if request["jsonrpc"] != "2.0":
                raise Failure(-32600, "Invalid Request")
            outcome = {"result": run(request["method"], request.get("params"))}
        except Failure as failure:
            outcome = {"error": failure.error}
    value = {"jsonrpc": "2.0", **outcome, **identity}
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("/", "\\/").encode()


class Server(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        while self.exchange():
            pass

    def exchange(self):
        """Answers a request. Returns true if the connection stays open."""
        lines = []
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            lines.append(line)
        if not line:
            return False
        headers = dict(line.decode().strip().lower().split(": ", 1) for line in lines[1:])
        body = self.rfile.read(int(headers.get("content-length", 0)))
        print("request:", json.dumps(b"".join(lines + [line, body]).decode()), flush=True)
        route = b" ".join(lines[0].split(b" ")[:2])
        stays = headers.get("connection") == "keep-alive"
        head = ["Connection: keep-alive"] * stays
        if route == b"POST /rpc":
            answer = respond(body)
            head = ["HTTP/1.1 200 OK", "Content-Type: application/json"] + head
        elif route == b"GET /health":
            answer, head = b"OK", ["HTTP/1.1 200 OK"] + head
        else:
            answer, head = b"", ["HTTP/1.1 404 Not Found"] + head
        self.wfile.write("\r\n".join(head + ["Content-Length: %d" % len(answer), "\r\n"]).encode() + answer)
        return stays


class Listener(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


parser = argparse.ArgumentParser()
parser.add_argument("--address", default="127.0.0.1")
parser.add_argument("--port", type=int, default=0)
options = parser.parse_args()
listener = Listener((options.address, options.port), Server)
print("listening on", listener.server_address[1], flush=True)
listener.serve_forever()
