#!/usr/bin/env python3
"""A stand-in for WebDriverAgent (github.com/appium/WebDriverAgent, 16.7.0, commit c279b4c): its routes, and the format of its answers.

Prints "listening on PORT", and "request: " with method, path and body for each request.
"""
import argparse
import http.server
import json
import urllib.parse

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
STATUS = {"ready": True, "message": "WebDriverAgent is ready to accept commands", "state": "success", "device": "iphone",
          "os": {"name": "iOS", "version": "17.1", "sdkVersion": "17.0", "testmanagerdVersion": 65535}, "ios": {"ip": "127.0.0.1"},
          "build": {"time": "Nov 22 2026 10:00:00", "version": "16.7.0",
                    "productBundleIdentifier": "com.facebook.WebDriverAgentRunner"}}
ELEMENT = {"element-6066-11e4-a52e-4f735466cecf": "E-1", "ELEMENT": "E-1"}
SOURCES = {"xml": "<XCUIElementTypeApplication/>", "json": {"type": "Application"}, "description": "Application, pid: 7"}
STRATEGIES = ("partial link text", "link text", "class name", "class chain", "xpath", "predicate string", "name", "id",
              "accessibility id")
BUTTONS = ("home", "volumeup", "volumedown", "action", "camera")
RECT = {"x": 0, "y": 0, "width": 10, "height": 10}


class Failure(Exception):
    def __init__(self, status, error, message):
        self.status, self.value = status, {"error": error, "message": message, "traceback": ""}


class Phone:
    """The methods behind the routes. Each has the query and the body."""
    running = ["com.example.shop"]

    def source(self, query, body):
        kind = query.get("format", "xml").lower()
        if kind not in SOURCES:
            raise Failure(400, "invalid argument", "Unknown source format '%s'." % kind)
        return SOURCES[kind]

    def active_app(self, query, body):
        arguments = {"args": [], "env": {}}
        return {"pid": 7, "bundleId": self.running[-1], "name": "Shop", "processArguments": arguments}

    def tap(self, query, body):
        if ("x" in body) != ("y" in body):
            raise Failure(400, "invalid argument", "Both x and y coordinates must be provided")

    def press(self, query, body):
        if body["name"].lower() not in BUTTONS:
            raise Failure(500, "unknown error", "The button '%s' is not supported." % body["name"])

    def launch(self, query, body):
        self.running = [app for app in self.running if app != body["bundleId"]] + [body["bundleId"]]

    def terminate(self, query, body):
        is_running = body["bundleId"] in self.running
        self.running = [app for app in self.running if app != body["bundleId"]]
        return is_running

    def find(self, query, body):
        if body["using"] not in STRATEGIES:
            raise Failure(400, "invalid selector", "Invalid locator requested: " + body["using"])
        return ELEMENT

    def set_value(self, query, body):
        if "value" not in body and "text" not in body:
            raise Failure(400, "invalid argument", "Neither 'value' nor 'text' parameter is provided")

    def keys(self, query, body):
        "".join(body["value"])

    def open(self, query, body):
        if "url" not in body:
            raise Failure(400, "invalid argument", "URL is required")


phone = Phone()


def constant(value):
    return lambda query, body: value


# These need no session.
SHARED = {
    "GET screenshot": constant(PICTURE), "GET source": phone.source, "GET wda/activeAppInfo": phone.active_app,
    "GET wda/locked": constant(False), "GET window/size": constant({"width": 390, "height": 844}),
}
ROUTES = {
    **SHARED, "POST wda/tap": phone.tap, "POST wda/dragfromtoforduration": constant(None), "POST wda/pressButton": phone.press,
    "POST wda/keys": phone.keys,
    "POST wda/apps/launch": phone.launch, "POST wda/apps/terminate": phone.terminate, "POST url": phone.open,
    "POST element": phone.find, "POST elements": lambda query, body: [phone.find(query, body)],
    "GET element/E-1/text": constant("Buy"), "GET element/E-1/rect": constant(RECT), "POST element/E-1/click": constant(None),
    "POST element/E-1/value": phone.set_value,
}


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
        status = 200
        try:
            value = self.value(body)
        except Failure as failure:
            status, value = failure.status, failure.value
        # NSJSONSerialization with NSJSONWritingPrettyPrinted.
        text = json.dumps({"value": value, "sessionId": Server.session}, indent=2, separators=(",", " : ")).replace("/", "\\/")
        self.send_response(status)
        self.send_header("Content-Type", "application/json;charset=UTF-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def value(self, body):
        url = urllib.parse.urlsplit(self.path)
        path, query = url.path[1:], dict(urllib.parse.parse_qsl(url.query))
        if (self.command, path) == ("GET", "status"):
            return STATUS
        if (self.command, path) == ("POST", "session"):
            Server.session = "S-%d" % (1 if Server.session is None else int(Server.session[2:]) + 1)
            return {"sessionId": Server.session, "capabilities": {"device": "iphone"}}
        routes = SHARED
        if path.startswith("session/"):
            name, _, path = path[len("session/"):].partition("/")
            if name != Server.session:
                raise Failure(404, "invalid session id", "Session does not exist")
            routes = ROUTES
            if (self.command, path) == ("DELETE", ""):
                Server.session = None
                return None
        route = "%s %s" % (self.command, path)
        if route not in routes and path.startswith("element/"):
            raise Failure(404, "no such element", "The element identified by '%s' is unknown" % path.split("/")[1])
        if route not in routes:
            raise Failure(404, "unknown command", "Unhandled endpoint: %s" % self.path)
        return routes[route](query, body)

    def log_message(self, *arguments):
        pass


parser = argparse.ArgumentParser()
parser.add_argument("--address", default="127.0.0.1")
parser.add_argument("--port", type=int, default=0)
options = parser.parse_args()
server = http.server.ThreadingHTTPServer((options.address, options.port), Server)
print("listening on", server.server_port, flush=True)
server.serve_forever()
