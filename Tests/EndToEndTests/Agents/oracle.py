#!/usr/bin/env python3
"""Sends every kind of request to the broker's MCP endpoints in every protocol version and validates each response.

  oracle.py SOCKET ENDPOINT

The references are the specification's JSON schemas (2025-11-25 for itself and earlier versions, 2026-07-28) and the strict models of
`mcp_types`. Prints one line per response, `ok` or `WRONG`, and exits with 1 if one was wrong.
"""
import base64
import http.client
import json
import os
import socket
import sys

import mcp_types.methods as models
from jsonschema import Draft202012Validator

path, endpoint = sys.argv[1:]
wrong = 0
META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
RESULTS = {
    "initialize": "InitializeResult", "server/discover": "DiscoverResult", "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult", "resources/list": "ListResourcesResult", "resources/read": "ReadResourceResult",
    "resources/templates/list": "ListResourceTemplatesResult",
}
TOLD = {
    "notifications/resources/updated": "ResourceUpdatedNotification",
    "notifications/resources/list_changed": "ResourceListChangedNotification",
    "notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
}
schemas = {}
for version in ("2025-11-25", MODERN):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "schemas", f"schema-{version}.json")) as file:
        schemas[version] = json.load(file)


def complaints(version, name, value):
    """Returns the violations of the named schema by a value."""
    schema = schemas[MODERN if version == MODERN else "2025-11-25"]
    validator = Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})
    return [f"{name} {error.json_path}: {error.message[:200]}" for error in validator.iter_errors(value)]


def judge(what, said):
    global wrong
    wrong += bool(said)
    print("WRONG" if said else "ok", *what, *said, flush=True)


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(path)


class Client:
    """One client with one protocol version at one URL."""

    def __init__(self, target, version):
        self.target, self.version, self.session, self.count = target, version, None, 0
        self.connection = Connection("localhost")

    def headers(self, method, params):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.version == MODERN or (self.version >= "2025-06-18" and method != "initialize"):
            headers["MCP-Protocol-Version"] = self.version
        if self.version == MODERN:
            headers["Mcp-Method"] = method
            if method in NAMED:
                name = params[NAMED[method]]
                plain = name.isascii() and name.isprintable()
                headers["Mcp-Name"] = name if plain else "=?base64?%s?=" % base64.b64encode(name.encode()).decode()
        elif self.session:
            headers["Mcp-Session-Id"] = self.session
        return headers

    def post(self, method, params, connection=None):
        self.count += 1
        params = dict(params)
        if self.version == MODERN:
            params["_meta"] = {
                META + "protocolVersion": MODERN, META + "clientCapabilities": {},
                META + "clientInfo": {"name": "oracle", "version": "1"},
            }
        body = {"jsonrpc": "2.0", "id": self.count, "method": method, "params": params}
        connection = connection or self.connection
        connection.request("POST", self.target, json.dumps(body), self.headers(method, params))
        return connection.getresponse()

    def ask(self, method, params={}, error=None, status=None):
        """Sends one request and validates its response; an error is expected if its code is given."""
        response = self.post(method, params)
        kind, content = response.getheader("Content-Type"), response.read()
        if kind == "text/event-stream":
            content = [line[6:] for line in content.split(b"\n") if line.startswith(b"data: ")][-1]
        answer, said = json.loads(content), []
        self.session = response.getheader("Mcp-Session-Id") or self.session
        if status and response.status != status:
            said.append(f"status {response.status} instead of {status}")
        if answer.get("id") != self.count:
            said.append(f"it is the answer to {answer.get('id')}")
        if error:
            said += complaints(self.version, "JSONRPCErrorResponse", answer)
            if answer.get("error", {}).get("code") != error:
                said.append(f"error {error} was expected: {content[:200]}")
        elif "result" not in answer:
            said.append(f"no result: {content[:300]}")
        else:
            said += self.judged(method, answer)
        judge((self.version, self.target, method, str(params.get("name", params.get("uri", "")))), said)
        return answer.get("result")

    def judged(self, method, answer):
        said = complaints(self.version, "JSONRPCResultResponse", answer)
        if method in RESULTS:
            said += complaints(self.version, RESULTS[method], answer["result"])
        try:
            models.validate_server_result(method, self.version, answer["result"])
        except KeyError:
            pass
        except Exception as problem:
            said.append(f"mcp_types: {str(problem)[:300]}")
        return said

    def told(self, answer, wanted):
        """Reads a stream up to the wanted notification and validates each message."""
        while line := answer.readline():
            if not line.startswith(b"data: "):
                continue
            message = json.loads(line[6:])
            method = message.get("method", "")
            said = complaints(self.version, TOLD[method], message) if method in TOLD else [f"what is {line[:200]}?"]
            if self.version == MODERN and META + "subscriptionId" not in message["params"]["_meta"]:
                said.append("it has no subscriptionId")
            judge((self.version, self.target, method), said)
            if method == wanted:
                return
        judge((self.version, self.target, wanted), ["the stream has ended before"])


def change(number):
    """Adds an endpoint to the list."""
    connection = Connection("localhost")
    body = {"name": f"new-{number}", "kind": "tcp", "address": "127.0.0.1", "port": 9}
    connection.request("POST", "/v1/endpoints", json.dumps(body), {"Content-Type": "application/json"})
    if connection.getresponse().status != 201:
        sys.exit("the list could not be changed")


def broker(client):
    """Checks all methods at /mcp except the handshake."""
    names = [tool["name"] for tool in client.ask("tools/list")["tools"]]
    judge((client.version, "six tools"), [] if len(names) == 6 else [str(names)])
    client.ask("resources/templates/list")
    for resource in client.ask("resources/list")["resources"]:
        client.ask("resources/read", {"uri": resource["uri"]})
    for name, arguments in (
        ("endpoint_list", {}), ("endpoint_list", {"endpoint": "größe"}), ("endpoint_list", {"state": "asleep"}),
        ("endpoint_tools", {"endpoint": endpoint}), ("endpoint_tools", {"endpoint": endpoint, "name": "screenshot"}),
        ("endpoint_call", {"endpoint": endpoint, "name": "launch_context"}),
        ("endpoint_call", {"endpoint": endpoint, "name": "screenshot", "arguments": {}}),
        ("endpoint_call", {"endpoint": "nowhere", "name": "x"}), ("endpoint_pair", {"endpoint": endpoint}),
        ("endpoint_wait", {"endpoint": endpoint}), ("endpoint_wait", {"endpoint": "nobody", "timeoutSeconds": 1}),
        ("port_forward", {"action": "open", "endpoint": endpoint}), ("port_forward", {"action": "list"}),
    ):
        client.ask("tools/call", {"name": name, "arguments": arguments})
    modern = client.version == MODERN
    # An unknown tool gets a result, because it is most often a tool of an app.
    assert client.ask("tools/call", {"name": "größe"}, status=200)["isError"] is True
    client.ask("resources/read", {"uri": "patchbay://none"}, error=-32602 if modern else -32002)
    # Some clients drop a server that has no list of a kind.
    assert client.ask("prompts/list")["prompts"] == []
    client.ask("no/such/method", error=-32601, status=404 if modern else 200)


def app(client):
    """Checks all methods of an app at its own URL: tools."""
    names = [tool["name"] for tool in client.ask("tools/list")["tools"]]
    judge((client.version, "sorted"), [] if names == sorted(names) else [str(names)])
    client.ask("tools/call", {"name": "launch_context", "arguments": {}})
    client.ask("tools/call", {"name": "screenshot", "arguments": {}})


for number, version in enumerate(LEGACY):
    for target, everything in (("/mcp", broker), (f"/e/{endpoint}/mcp", app)):
        client = Client(target, version)
        hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "oracle", "version": "1"}}
        agreed = client.ask("initialize", hello)["protocolVersion"]
        judge((version, "is agreed on"), [] if agreed == version and client.session else [agreed])
        client.ask("ping")
        everything(client)
        if target == "/mcp":
            client.ask("resources/subscribe", {"uri": "patchbay://endpoints"})
            stream = Connection("localhost")
            stream.request("GET", target, headers={"Accept": "text/event-stream", "Mcp-Session-Id": client.session})
            answer = stream.getresponse()
            change(number)
            client.told(answer, "notifications/resources/updated")
            client.ask("resources/unsubscribe", {"uri": "patchbay://endpoints"})

for target, everything in (("/mcp", broker), (f"/e/{endpoint}/mcp", app)):
    client = Client(target, MODERN)
    client.ask("server/discover")
    everything(client)
    for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe"):
        client.ask(method, error=-32601, status=404)
client = Client("/mcp", MODERN)
wanted = {"resourcesListChanged": True, "resourceSubscriptions": ["patchbay://endpoints"], "toolsListChanged": True}
answer = client.post("subscriptions/listen", {"notifications": wanted}, Connection("localhost"))
client.told(answer, "notifications/subscriptions/acknowledged")
change("modern")
client.told(answer, "notifications/resources/updated")
sys.exit(bool(wrong))
