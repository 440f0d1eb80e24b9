#!/usr/bin/env python3
"""A stand-in for WebDriverAgent. Prints "listening on PORT", and "request: " with method, path and body for each request."""
import argparse
import base64
import http.server
import json

PICTURE = base64.b64encode(base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")).decode()
STATUS = {"ready": True, "message": "WebDriverAgent is ready to accept commands", "state": "success",
          "os": {"name": "iOS", "version": "17.1", "sdkVersion": "17.0"}, "ios": {"ip": "127.0.0.1"},
          "build": {"time": "Nov 22 2026 10:00:00", "version": "9.1.0",
                    "productBundleIdentifier": "com.facebook.WebDriverAgentRunner"}}
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Server(http.server.BaseHTTPRequestHandler):
    session = None

    def do_GET(self):
        self.answer(None)

    def do_POST(self):
        self.answer(json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}"))

    def do_DELETE(self):
        self.answer(None)

    def answer(self, body):
        print("request:", json.dumps({"method": self.command, "path": self.path, "body": body}), flush=True)
        status, value = self.value(self.path.split("?")[0].split("/")[1:])
        text = json.dumps({"value": value, "sessionId": Server.session}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def value(self, parts):
        if parts == ["status"]:
            return 200, STATUS
        if parts == ["session"] and self.command == "POST":
            Server.session = "S-%d" % (1 if Server.session is None else int(Server.session[2:]) + 1)
            return 200, {"sessionId": Server.session, "capabilities": {"device": "iphone"}}
        if parts[0] == "session":
            if parts[1] != Server.session:
                return 404, {"error": "invalid session id", "message": "Session does not exist", "traceback": ""}
            parts = parts[2:]
        known = {
            ("screenshot",): PICTURE, ("source",): "<XCUIElementTypeApplication/>", ("window", "size"): {"width": 390, "height": 844},
            ("wda", "activeAppInfo"): {"bundleId": "com.example.shop", "pid": 7}, ("element",): {ELEMENT: "E-1", "ELEMENT": "E-1"},
            ("elements",): [{ELEMENT: "E-1", "ELEMENT": "E-1"}], ("element", "E-1", "text"): "Buy",
            ("element", "E-1", "rect"): {"x": 0, "y": 0, "width": 10, "height": 10},
        }
        return 200, known.get(tuple(parts))

    def log_message(self, *arguments):
        pass


parser = argparse.ArgumentParser()
parser.add_argument("--address", default="127.0.0.1")
parser.add_argument("--port", type=int, default=0)
options = parser.parse_args()
server = http.server.ThreadingHTTPServer((options.address, options.port), Server)
print("listening on", server.server_port, flush=True)
server.serve_forever()
