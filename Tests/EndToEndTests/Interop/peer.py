"""Sloppy MCP servers and clients of the field, and the socket of a broker between them.

A module of cases has a list `CASES` of (source, description, function). `run` calls each function with a `Broker` and prints
`ok SOURCE: DESCRIPTION` or `FAIL SOURCE: DESCRIPTION: reason`. The arguments of a module are the broker's socket, its port on
127.0.0.1, a grant, and the path of `patchbay`.
"""

import http.client
import itertools
import json
import os
import socket
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERSION = "2025-06-18"
HELLO = {"name": "hello", "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}}}
ACCEPT = "application/json, text/event-stream"
numbers = itertools.count(1)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Broker:
    def __init__(self, path, port, grant, program):
        self.path, self.port, self.grant, self.program = path, int(port), grant, program

    def send(self, method, target, body=None, headers=(), timeout=30):
        """Sends one request over the socket and returns the status, the headers and the body."""
        connection = UnixConnection(self.path, timeout)
        connection.request(method, target, body, dict(headers))
        response = connection.getresponse()
        data = response.read()
        connection.close()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, data

    def rest(self, method, target, body=None):
        data = None if body is None else json.dumps(body).encode()
        status, _, data = self.send(method, "/v1/" + target, data, {"Content-Type": "application/json"})
        return status, json.loads(data) if data else None

    def add(self, port, address="127.0.0.1", kind="mcp"):
        """Adds an entry for a server, and returns the ID of the endpoint."""
        body = {"name": f"case{next(numbers)}", "kind": kind, "address": address, "port": port}
        status, answer = self.rest("POST", "endpoints", body)
        assert status == 201, f"the entry was refused: {answer}"
        return answer["id"] if "id" in answer else answer["endpoint"]["id"]

    def client(self, identifier=None, **options):
        return Client(self, f"/e/{identifier}/mcp" if identifier else "/mcp", **options)


class Client:
    """A client of MCP over HTTP without rules of its own."""

    def __init__(self, broker, path, version=VERSION, capabilities=None, hello=True):
        self.broker, self.path, self.session, self.version, self.numbers = broker, path, None, None, itertools.count(1)
        if hello:
            params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": {"name": "c", "version": "1"}}
            self.welcome = self.request("initialize", params)
            self.version = self.welcome["result"]["protocolVersion"]
            self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def headers(self):
        values = {"Content-Type": "application/json", "Accept": ACCEPT}
        if self.session:
            values["Mcp-Session-Id"] = self.session
        if self.version:
            values["MCP-Protocol-Version"] = self.version
        return values

    def post(self, message, headers=None, timeout=30):
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        status, names, data = self.broker.send("POST", self.path, body, self.headers() if headers is None else headers, timeout)
        self.session = names.get("mcp-session-id", self.session)
        return status, names, messages(names, data)

    def request(self, method, params=None, number=None, timeout=30):
        number = next(self.numbers) if number is None else number
        message = {"jsonrpc": "2.0", "id": number, "method": method} | ({} if params is None else {"params": params})
        status, _, found = self.post(message, timeout=timeout)
        answers = [one for one in found if one.get("id") == number and type(one.get("id")) is type(number)]
        assert answers, f"{method} got {status} without a response of its ID: {str(found)[:300]}"
        return answers[-1]

    def tools(self):
        answer = self.request("tools/list")
        assert "result" in answer, f"tools/list: {answer['error']['message'][:300]}"
        return {tool["name"]: tool for tool in answer["result"]["tools"]}

    def call(self, name="hello", arguments=None, **options):
        params = {"name": name} | ({} if arguments is None else {"arguments": arguments})
        answer = self.request("tools/call", params, **options)
        assert "result" in answer, f"tools/call: {answer['error']['message'][:300]}"
        return answer["result"]


def messages(headers, data):
    """Returns the messages of a JSON body or of server-sent events."""
    if not headers.get("content-type", "").startswith("text/event-stream"):
        if not data:
            return []
        value = json.loads(data)
        return value if isinstance(value, list) else [value]
    events = data.decode().replace("\r\n", "\n").split("\n\n")
    texts = ["\n".join(line[5:].lstrip() for line in event.split("\n") if line.startswith("data:")) for event in events]
    return [json.loads(text) for text in texts if text]


class Server:
    """An MCP server over HTTP. A hook sees each request first; it returns True after it has responded."""

    def __init__(self, hook=None, tools=None, results=None, capabilities=None, path="/mcp", address="127.0.0.1"):
        self.hook, self.path, self.results = hook, path, results or {}
        self.tools = [HELLO] if tools is None else tools
        self.capabilities = {"tools": {}} if capabilities is None else capabilities
        self.received = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            server_side = self

            def log_message(self, *arguments):
                pass

            def respond(self, status, body=b"", kind="application/json", headers=()):
                self.send_response(status)
                for name, value in ([("Content-Type", kind)] if kind else []) + list(headers):
                    self.send_header(name, value)
                if status != 204:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def stream(self, *pieces, kind="text/event-stream"):
                """Responds with pieces of an event stream, each in its own chunk."""
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for piece in pieces:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")

            def do_GET(self):
                if not self.server_side.hook or not self.server_side.hook(self, None):
                    self.respond(405)

            def do_DELETE(self):
                self.respond(200)

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                message = json.loads(body)
                self.server_side.received.append(message)
                if self.server_side.hook and self.server_side.hook(self, message):
                    return
                if self.path != self.server_side.path:
                    self.respond(404, b"Not Found", "text/plain")
                elif "id" not in message or "method" not in message:
                    self.respond(202, kind=None)
                else:
                    self.respond(200, self.server_side.reply(message))

        class Listener(ThreadingHTTPServer):
            daemon_threads = True
            address_family = socket.AF_INET6 if ":" in address else socket.AF_INET

        self.listener = Listener((address, 0), Handler)
        self.port = self.listener.server_address[1]
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()

    def reply(self, message, **members):
        """Returns the response as JSON. A result given as bytes is used as it is."""
        result = self.result(message)
        if isinstance(result, bytes):
            return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (json.dumps(message["id"]).encode(), result)
        return json.dumps({"jsonrpc": "2.0", "id": message["id"]} | result | members, ensure_ascii=False).encode()

    def result(self, message):
        method = message["method"]
        if method in self.results:
            value = self.results[method]
            value = value(message.get("params") or {}) if callable(value) else value
            return value if isinstance(value, bytes) or "error" in value else {"result": value}
        if method == "initialize":
            return {"result": {
                "protocolVersion": message["params"]["protocolVersion"], "capabilities": self.capabilities,
                "serverInfo": {"name": "case", "version": "1"},
            }}
        if method == "tools/list":
            return {"result": {"tools": self.tools}}
        if method == "tools/call":
            return {"result": {"content": [{"type": "text", "text": json.dumps(message["params"].get("arguments"), ensure_ascii=False)}]}}
        return {"result": {}} if method == "ping" else {"error": {"code": -32601, "message": "Method not found"}}

    def calls(self):
        return [message["params"] for message in self.received if message.get("method") == "tools/call"]

    def close(self):
        self.listener.shutdown()
        self.listener.server_close()


def works(broker, *servers, **options):
    """Checks that a client behind the broker lists and calls the tool of each server."""
    for server in servers or [Server(**options)]:
        client = broker.client(broker.add(server.port))
        assert "hello" in client.tools(), "the tool is not listed"
        result = client.call(arguments={"x": "é1"})
        assert not result.get("isError") and json.loads(result["content"][0]["text"]) == {"x": "é1"}, f"the call returned {result}"


def run(cases):
    broker = Broker(*sys.argv[1:5])
    chosen = sys.argv[5] if len(sys.argv) > 5 else ""
    for source, text, function in cases:
        if chosen not in source + text:
            continue
        try:
            function(broker)
            print(f"ok {source}: {text}", flush=True)
        except Exception as error:
            print(f"FAIL {source}: {text}: {type(error).__name__} {str(error)[:400]!r}", flush=True)
    os._exit(0)
