#!/usr/bin/env python3
"""A stand-in for an app with DebugBridge: a boot token works once, for its exchange, and changes need a session.

Prints "listening on PORT", and "request: METHOD PATH" for each request.
"""
import argparse
import http.server
import json

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
HEALTH = {"version": "1", "build": "42", "accessor_hash": "ab12", "bundle_id": "com.example.bridge"}
VALUES = {"/screenshot": {"png_base64": PICTURE}, "/elements": {"elements": []}, "/state/snapshot": {"cart": 2}}
SESSION = "S-1"


class App(http.server.BaseHTTPRequestHandler):
    token = None

    def do_GET(self):
        if self.path == "/healthz":
            return self.reply(200, HEALTH)
        if self.headers.get("Authorization") != "Bearer %s" % App.token:
            return self.reply(401, {"error": "unauthorized"})
        value = VALUES.get(self.path)
        self.reply(200 if value else 404, value or {"error": "not_found"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        shown = self.headers.get("Authorization")
        if self.path == "/auth/rotate" and App.token is None and shown == "Bearer %s" % options.boot_token:
            App.token = body["new_token"]
            return self.reply(200, {"ok": True})
        if App.token is None or shown != "Bearer %s" % App.token:
            return self.reply(401, {"error": "boot_token_invalid" if self.path == "/auth/rotate" else "unauthorized"})
        if self.path == "/session/acquire":
            return self.reply(200, {"session_id": SESSION, "ttl_seconds": 300})
        if self.headers.get("X-Session-Id") != SESSION:
            return self.reply(409, {"error": "session_required"})
        self.reply(200, {"ok": True})

    def reply(self, status, value):
        print("request:", self.command, self.path, flush=True)
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


parser = argparse.ArgumentParser()
parser.add_argument("--address", default="127.0.0.1")
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--boot-token", default="BOOT-TOKEN-0123456789")
options = parser.parse_args()
server = http.server.ThreadingHTTPServer((options.address, options.port), App)
print("listening on", server.server_port, flush=True)
server.serve_forever()
