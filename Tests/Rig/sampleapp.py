#!/usr/bin/env python3
"""A stand-in for an app with AppReveal 0.9 in it: MCP over HTTP with that server's own habits.

Any path takes POST, GET knows /health only, a notification is answered with 204 instead of 202, ping is an unknown
method, and every connection closes after one answer. Prints "listening on PORT" when it is ready.
"""
import argparse
import http.server
import itertools
import json

CALLS = itertools.count()
ACTIONS = ["launch_context", "get_screen", "get_elements", "tap_element", "screenshot"]


class App(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path.split("?")[0] != "/health":
            return self.reply(405, {"error": "Method not allowed"})
        self.reply(200, {"status": "ok", "port": self.server.server_port, "bonjour": "advertising"})

    def do_OPTIONS(self):
        self.reply(204)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            request = json.loads(body)
            method, number = request["method"], request.get("id")
        except (ValueError, KeyError, TypeError):
            return self.reply(200, answer(None, error={"code": -32700, "message": "Parse error"}))
        if number is None:
            return self.reply(204)
        self.reply(200, self.call(number, method, request.get("params") or {}))

    def call(self, number, method, params):
        if method == "initialize":
            return answer(number, {
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "AppReveal", "version": "0.9.1"}})
        if method == "tools/list":
            return answer(number, {"tools": [
                {"name": name, "description": name.replace("_", " "), "inputSchema": {"type": "object"}}
                for name in ACTIONS]})
        if method == "tools/call" and next(CALLS) < options.shy:
            return answer(number, error={"code": -32000, "message": "The app is still starting"})
        if method == "tools/call" and params.get("name") in ACTIONS:
            facts = {"bundleId": options.bundle, "version": options.version, "platform": "iOS", "called": params["name"]}
            return answer(number, {"content": [{"type": "text", "text": json.dumps(facts)}], "isError": False})
        return answer(number, error={"code": -32601, "message": "Method not found"})

    def reply(self, status, value=None):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        if value is not None:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        print("request:", *arguments[1:], flush=True)


def answer(number, result=None, error=None):
    outcome = {"result": result} if error is None else {"error": error}
    return {"jsonrpc": "2.0", "id": number, **outcome}


parser = argparse.ArgumentParser()
parser.add_argument("--address", default="127.0.0.1")
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--bundle", default="com.example.shop")
parser.add_argument("--version", default="3.2.0")
parser.add_argument("--shy", type=int, default=0, help="how many calls it answers with an error first")
options = parser.parse_args()
server = http.server.ThreadingHTTPServer((options.address, options.port), App)
server.daemon_threads = True
print("listening on", server.server_port, flush=True)
server.serve_forever()
