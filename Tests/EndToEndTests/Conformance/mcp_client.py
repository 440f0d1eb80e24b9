"""A client of MCP's Streamable HTTP transport without any rule of its own: it sends what a scenario says."""

import http.client
import json
import threading
from urllib.parse import urlsplit

META = "io.modelcontextprotocol/"
STATELESS = "2026-07-28"
EVERYTHING = {"sampling": {}, "elicitation": {}, "roots": {"listChanged": True}}
ANSWERS = {
    "sampling/createMessage": {
        "role": "assistant", "model": "test", "stopReason": "endTurn", "content": {"type": "text", "text": "Paris"},
    },
    "elicitation/create": {"action": "accept", "content": {"username": "anna", "email": "anna@example.com"}},
    "roots/list": {"roots": [{"uri": "file:///one", "name": "one"}]},
}
LIMIT = 60


class Response:
    def __init__(self, status, headers, messages):
        self.status = status
        self.headers = headers
        # All messages of the response, in order. `final` is the last one, which is the response to the request.
        self.messages = messages

    @property
    def final(self):
        return self.messages[-1] if self.messages else {}

    @property
    def result(self):
        assert self.status == 200 and "result" in self.final, f"{self.status} {self.final}"
        return self.final["result"]

    @property
    def code(self):
        return self.final.get("error", {}).get("code")

    def notifications(self, method):
        return [message["params"] for message in self.messages if message.get("method") == method]


class Client:
    def __init__(self, url, token, version, capabilities=EVERYTHING):
        self.url = urlsplit(url)
        self.token = token
        self.version = version
        self.capabilities = capabilities
        self.session = None
        self.lock = threading.Lock()
        self.last_id = 0
        # The requests of the server to this client.
        self.asked = []

    @property
    def is_stateless(self):
        return self.version == STATELESS

    def next_id(self):
        with self.lock:
            self.last_id += 1
            return self.last_id

    def exchange(self, verb, body=None, headers=None, on_message=None):
        """Sends an HTTP request. A header with the value None is left out."""
        connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=LIMIT)
        fields = {
            "Authorization": f"Bearer {self.token}" if self.token else None,
            "Accept": "application/json, text/event-stream",
        }
        if body is not None:
            fields["Content-Type"] = "application/json"
        if self.session:
            fields["Mcp-Session-Id"] = self.session
            fields["MCP-Protocol-Version"] = self.version
        fields |= headers or {}
        fields = {name: value for name, value in fields.items() if value is not None}
        try:
            connection.request(verb, self.url.path, None if body is None else json.dumps(body).encode(), fields)
            response = connection.getresponse()
            kind = response.getheader("Content-Type", "")
            messages = []
            if kind.startswith("text/event-stream"):
                for message in events(response):
                    messages.append(message)
                    if "method" in message and "id" in message:
                        self.answer(message)
                    if on_message and on_message(message) is False:
                        break
            else:
                data = response.read()
                if kind.startswith("application/json") and data:
                    messages.append(json.loads(data))
            return Response(response.status, response.headers, messages)
        finally:
            connection.close()

    def answer(self, request):
        self.asked.append(request)
        reply = {"jsonrpc": "2.0", "id": request["id"], "result": ANSWERS[request["method"]]}
        assert self.exchange("POST", reply).status == 202

    def meta(self, **changes):
        meta = {
            META + "protocolVersion": self.version, META + "clientInfo": {"name": "conformance", "version": "1"},
            META + "clientCapabilities": self.capabilities,
        }
        meta |= {META + name: value for name, value in changes.items()}
        return {name: value for name, value in meta.items() if value is not None}

    def request(self, method, params=None, headers=None, meta=None, on_message=None):
        """Sends a request of the client's version. `meta` replaces the metadata; False leaves them out."""
        params = dict(params or {})
        fields = dict(headers or {})
        if self.is_stateless:
            if meta is not False:
                params["_meta"] = (params.get("_meta") or {}) | (self.meta() if meta is None else meta)
            name = params.get("uri" if method == "resources/read" else "name")
            standard = {"MCP-Protocol-Version": self.version, "Mcp-Method": method}
            if method in ("tools/call", "prompts/get", "resources/read"):
                standard["Mcp-Name"] = name
            given = {field.lower() for field in fields}
            fields |= {field: value for field, value in standard.items() if field.lower() not in given}
        body = {"jsonrpc": "2.0", "id": self.next_id(), "method": method, "params": params}
        return self.exchange("POST", body, fields, on_message)

    def initialize(self):
        """Does the handshake of a version with sessions. Returns its response."""
        params = {
            "protocolVersion": self.version, "capabilities": self.capabilities,
            "clientInfo": {"name": "conformance", "version": "1"},
        }
        self.session = None
        response = self.request("initialize", params)
        self.session = response.headers.get("Mcp-Session-Id")
        self.version = response.result["protocolVersion"]
        assert self.exchange("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202
        return response

    def call(self, tool, arguments=None, **more):
        return self.request("tools/call", {"name": tool, "arguments": arguments or {}} | more)


def events(response):
    """The messages of a stream. Events without a message are left out."""
    data = []
    for line in response:
        line = line.decode().rstrip("\r\n")
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line:
            if "".join(data):
                yield json.loads("\n".join(data))
            data = []
