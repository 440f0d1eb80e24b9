#!/usr/bin/env python3
"""A stand-in for the server of mobilecli (github.com/mobile-next/mobilecli, commit 9605a2e): JSON-RPC at `POST /rpc`.

Written from the source, without a run of the original. Bodies have the bytes of Go's encoding/json: the members of a struct in their
order, those of a map sorted, `\\u0026` for `&`, and a newline at the end. Errors have the status 200, and their text in `data`.

Prints "listening on PORT", and "request: " with the body of each request as a JSON text.
"""
import argparse
import http.server
import json

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
DEVICES = [{"id": "emulator-5554", "name": "Pixel 8", "platform": "android", "type": "emulator", "version": "15", "state": "online",
            "model": "Pixel 8", "provider": {"type": "local"}}]
BUTTONS = ("HOME", "BACK", "VOLUME_UP", "VOLUME_DOWN", "ENTER", "BACKSPACE", "APP_SWITCH", "POWER")
DONE = {"status": "ok"}
state = {"orientation": "portrait", "app": "com.example.shop"}


class Failure(Exception):
    pass


def device(given):
    """The device of the ID, or the only one that is online."""
    wanted = given.get("deviceId", "")
    for each in DEVICES:
        if each["id"] == wanted or not wanted:
            return each
    raise Failure("error finding device: device not found: " + wanted)


def listed(given):
    kept = [each for each in DEVICES if given.get("platform", "") in ("", each["platform"]) and given.get("type", "") in ("", each["type"])]
    return {"devices": kept}


def info(given):
    return {"device": {**device(given), "screenSize": {"width": 412, "height": 915, "scale": 1}}}


def screenshot(given):
    device(given)
    form = given.get("format") or "png"
    return {"data": "data:image/%s;base64,%s" % (form, PICTURE), "format": form}


def elements(given):
    device(given)
    if given.get("format") == "raw":
        return {"rawData": "<hierarchy/>"}
    return {"elements": [{"type": "android.widget.Button", "label": "Buy", "rect": {"x": 20, "y": 700, "width": 350, "height": 50}}]}


def done(given):
    device(given)
    return DONE


def swipe(given):
    if not given.get("deviceId"):
        raise Failure("'deviceId' is required")
    for key in ("x1", "y1", "x2", "y2"):
        if key not in given:
            raise Failure("'%s' is required" % key)
    return done(given)


def button(given):
    if given.get("button") not in BUTTONS:
        raise Failure("AndroidDevice: unsupported button key: " + given.get("button", ""))
    return done(given)


def turn(given):
    device(given)
    if given.get("orientation") not in ("portrait", "landscape"):
        raise Failure("invalid orientation value '%s', must be 'portrait' or 'landscape'" % given.get("orientation", ""))
    state["orientation"] = given["orientation"]
    return DONE


def launch(given):
    state["app"] = given["bundleId"]
    return {"message": "Launched app '%s' on device %s" % (given["bundleId"], device(given)["id"])}


def terminate(given):
    return {"message": "Terminated app '%s' on device %s" % (given["bundleId"], device(given)["id"])}


def boot(given):
    return {"message": "Device %s booted successfully" % device(given)["id"]}


METHODS = {
    "devices.list": listed, "device.info": info, "device.screenshot": screenshot, "device.dump.ui": elements,
    "device.apps.foreground": lambda given: {"packageName": state["app"], "appName": "Shop", "version": "1.0"},
    "device.apps.list": lambda given: [{"packageName": "com.example.shop", "appName": "Shop", "version": "1.0"}],
    "device.io.tap": done, "device.io.longpress": done, "device.io.swipe": swipe, "device.io.text": done, "device.io.button": button,
    "device.io.orientation.get": lambda given: {"orientation": state["orientation"]}, "device.io.orientation.set": turn,
    "device.url": done, "device.apps.launch": launch, "device.apps.terminate": terminate, "device.boot": boot,
    "server.info": lambda given: {"name": "mobilecli", "version": "0.9.9"},
}


def respond(body):
    """Returns the response to a request as a value."""
    try:
        request = json.loads(body)
    except ValueError:
        return failed(None, -32700, "Parse error", "expecting jsonrpc payload")
    number = request.get("id")
    if request.get("jsonrpc") != "2.0":
        return failed(number, -32600, "Invalid Request", "'jsonrpc' must be '2.0'")
    if number is None:
        return failed(None, -32600, "Invalid Request", "'id' field is required")
    method = request.get("method", "")
    if method not in METHODS:
        return failed(number, -32601, "Method not found", "Method '%s' not found" % method)
    try:
        return {"jsonrpc": "2.0", "result": METHODS[method](request.get("params") or {}), "id": number}
    except Failure as failure:
        return failed(number, -32000, "Server error", str(failure))


def failed(number, code, message, data):
    return {"jsonrpc": "2.0", "error": {"code": code, "data": data, "message": message}, "id": number}


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/rpc":
            return self.answer(200, "application/json", b'{"status":"ok"}\n')
        print("request:", json.dumps(body.decode()), flush=True)
        text = json.dumps(respond(body), separators=(",", ":"), ensure_ascii=False)
        for sign in "&<>":
            text = text.replace(sign, "\\u%04x" % ord(sign))
        self.answer(200, "application/json", text.encode() + b"\n")

    def do_GET(self):
        if self.path == "/rpc":
            return self.answer(405, "text/plain; charset=utf-8", b"Method not allowed\n")
        self.answer(200, "application/json", b'{"status":"ok"}\n')

    def answer(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


parser = argparse.ArgumentParser()
parser.add_argument("--address", default="127.0.0.1")
parser.add_argument("--port", type=int, default=0)
options = parser.parse_args()
listener = http.server.ThreadingHTTPServer((options.address, options.port), Server)
print("listening on", listener.server_address[1], flush=True)
listener.serve_forever()
