#!/usr/bin/env python3
"""A stand-in for an app with app-debug: plain HTTP without a token, one request at a time, as on the app's main thread.

Prints "listening on PORT", and "request: METHOD PATH BODY" for each request. Standard input takes "break", which stops the app as
a breakpoint does, and "continue".
"""
import argparse
import http.server
import json
import struct
import sys
import threading
import zlib


def picture(width, height):
    """Returns a grey PNG."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = (b"\0" + b"\x80" * width) * height
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def video(size):
    """Returns an MP4 file: a type box (ISO 14496-12) and a box of free space."""
    kind = struct.pack(">I", 16) + b"ftypisom" + struct.pack(">I", 512)
    return kind + struct.pack(">I", size - 16) + b"free" + bytes(size - 24)


class App(http.server.BaseHTTPRequestHandler):
    disable_nagle_algorithm = True
    screen = "home"
    is_recording = False

    def do_GET(self):
        self.say()
        if self.path == "/screenshot":
            return self.reply(200, picture(390, 844), "image/png")
        values = {
            "/actions": {"home": ["open-cart", "search"], "cart": ["buy", "back"]}[App.screen],
            "/state": {"screen": App.screen, "user": {"name": "Anna", "notes": "x" * 10_000}},
        }
        if self.path not in values:
            return self.reply(404, b"")
        self.reply(200, json.dumps(values[self.path]).encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.say(body.decode())
        if self.path == "/record/stop" and App.is_recording:
            App.is_recording = False
            return self.reply(200, video(options.video), "video/mp4")
        if self.path == "/activate":
            App.screen = {"open-cart": "cart", "back": "home"}.get(json.loads(body)["identifier"], App.screen)
        elif self.path == "/record/start":
            App.is_recording = True
        else:
            return self.reply(404, b"")
        self.reply(200, b'{"ok": true}')

    def say(self, body=""):
        print("request: %s %s %s" % (self.command, self.path, body), flush=True)
        running.wait()

    def reply(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def obey():
    for line in sys.stdin:
        running.clear() if line.strip() == "break" else running.set()


parser = argparse.ArgumentParser()
parser.add_argument("--address", default="127.0.0.1")
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--video", type=int, default=3_000_000, help="the size of a recording in bytes")
options = parser.parse_args()
running = threading.Event()
running.set()
server = http.server.HTTPServer((options.address, options.port), App)
threading.Thread(target=obey, daemon=True).start()
print("listening on", server.server_port, flush=True)
server.serve_forever()
