"""An MCP client of the standard library's own, which costs as little as it can: what is measured is the server."""
import http.client
import json
import socket
import time


class Connection(http.client.HTTPConnection):
    """To a port of the loopback, or to a unix socket."""

    def __init__(self, address):
        super().__init__("localhost" if isinstance(address, str) else address[0],
                         None if isinstance(address, str) else address[1], timeout=30)
        self.address = address

    def connect(self):
        if isinstance(self.address, str):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(self.timeout)
            self.sock.connect(self.address)
        else:
            super().connect()
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Client:
    """One session of 2025-06-18."""

    def __init__(self, path):
        self.path = path
        self.connection = Connection(path.address)
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **path.headers}
        self.number = 0

    def open(self):
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        answer, headers = self.post("initialize", hello)
        self.headers["MCP-Protocol-Version"] = answer["result"]["protocolVersion"]
        if headers.get("Mcp-Session-Id"):
            self.headers["Mcp-Session-Id"] = headers["Mcp-Session-Id"]
        self.post("notifications/initialized", None)

    def call(self, tool):
        start = time.perf_counter()
        answer, _ = self.post("tools/call", {"name": tool, "arguments": {}})
        seconds = time.perf_counter() - start
        result = answer.get("result", {})
        if result.get("isError") or "launch_context" not in str(result.get("content")):
            raise RuntimeError("%s answers %s" % (self.path.name, answer))
        return seconds

    def post(self, method, params):
        message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            self.number += 1
            message |= {"id": self.number, "params": params}
        self.connection.request("POST", self.path.target, json.dumps(message), self.headers)
        response = self.connection.getresponse()
        if response.headers.get_content_type() == "text/event-stream" and response.status == 200:
            answer = self.event(response)
        else:
            body = response.read()
            if response.status >= 300:
                raise RuntimeError("%s: status %d, %s" % (self.path.name, response.status, body[:300]))
            answer = json.loads(body) if body else None
        return answer, response.headers

    def event(self, response):
        """The first answer on the stream; the rest of it is read, so that the connection can be used again."""
        answer = None
        for line in response:
            if line.startswith(b"data:") and answer is None:
                message = json.loads(line[5:])
                answer = message if message.get("id") == self.number else None
        return answer
