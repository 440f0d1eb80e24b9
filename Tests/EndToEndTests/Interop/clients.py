"""Clients that send another form than MCP's: headers, IDs, versions, parameters and tokens."""

import http.client
import json
import socket

from peer import ACCEPT, Client, Server, UnixConnection, run

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"},
}}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


def edited(message, **members):
    return message | {"params": message["params"] | members}


def heard(headers, status=200):
    """Returns a case: `initialize` with these headers gets this status, and a message."""
    def case(broker):
        found, _, messages = Client(broker, "/mcp", hello=False).post(INITIALIZE, headers)
        assert found == status, f"{found} {messages}"
        assert status != 200 or messages[-1]["result"]["protocolVersion"] == "2025-06-18", messages
    return case


def numbered(number):
    """Returns a case: the response has the ID of the request, with its type and digits."""
    def case(broker):
        client = broker.client()
        raw = json.dumps({"jsonrpc": "2.0", "method": "ping"})[:-1] + f', "id": {number}}}'
        status, _, data = broker.send("POST", "/mcp", raw.encode(), client.headers())
        assert status == 200 and f'"id":{number}'.encode() in data.replace(b'"id": ', b'"id":'), f"{status} {data!r}"
    return case


def greeted(version="2025-06-18", **members):
    """Returns a case: a handshake with other members of `params` succeeds, and a list follows."""
    def case(broker):
        client = Client(broker, "/mcp", hello=False)
        _, _, messages = client.post(edited(INITIALIZE, **members))
        assert messages and "result" in messages[-1], messages
        client.version = messages[-1]["result"]["protocolVersion"]
        assert client.version == version, client.version
        assert "result" in client.post(LIST)[2][-1]
    return case


def null_request(broker):
    """A request whose ID is null gets an error and is not taken for a notification."""
    client = broker.client()
    status, _, messages = client.post({"jsonrpc": "2.0", "id": None, "method": "tools/list"})
    assert status == 400 and messages and messages[-1]["error"]["code"] == -32600, f"{status} {messages}"


def without_version(broker):
    """A session without the header of the version has the version of its handshake."""
    client = broker.client()
    client.version = None
    assert "result" in client.request("tools/list")


def strange_version(broker):
    """A version that nobody knows gets 400 and a reason after the handshake."""
    client = broker.client()
    client.version = "1999-01-01"
    status, _, messages = client.post(LIST)
    assert status == 400 and "1999-01-01" in json.dumps(messages), f"{status} {messages}"


def without_params(value):
    def case(broker):
        client = broker.client(broker.add(Server().port))
        answer = client.post(LIST | ({} if value is None else {"params": json.loads(value)}))[2][-1]
        assert "result" in answer and answer["result"]["tools"][0]["name"] == "hello", answer
    return case


def cancelled(**params):
    """A cancellation of nothing is accepted."""
    def case(broker):
        client = broker.client()
        status, _, _ = client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        assert status == 202, status
        assert "result" in client.request("ping")
    return case


def batch(broker):
    """A batch, which 2025-06-18 does not have, gets an error that names it."""
    client = broker.client()
    status, _, messages = client.post([LIST, {"jsonrpc": "2.0", "id": 3, "method": "ping"}])
    assert status == 400 and "batch" in json.dumps(messages).lower(), f"{status} {messages}"


def old_batch(broker):
    client = broker.client(version="2025-03-26")
    _, _, messages = client.post([LIST, {"jsonrpc": "2.0", "id": 3, "method": "ping"}])
    assert sorted(one["id"] for one in messages) == [2, 3], messages


def forgotten(method):
    """An unknown session gets 404, after which a client begins anew."""
    def case(broker):
        headers = {"Content-Type": "application/json", "Accept": ACCEPT, "Mcp-Session-Id": "b0c2a2ce-4c1d"}
        status, _, _ = broker.send(method, "/mcp", json.dumps(LIST).encode() if method == "POST" else None, headers)
        assert status == 404, status
    return case


def get_first(broker):
    """GET before any session is 405 or a stream, as the specification allows."""
    connection = UnixConnection(broker.path, 5)
    connection.request("GET", "/mcp", headers={"Accept": "text/event-stream"})
    response = connection.getresponse()
    assert response.status == 405 or response.headers["Content-Type"] == "text/event-stream", f"{response.status} {response.headers}"


def slash(broker):
    """A slash at the end of the path is not another resource."""
    identifier = broker.add(Server().port)
    for path in ("/mcp/", f"/e/{identifier}/mcp/"):
        status, _, messages = Client(broker, path, hello=False).post(INITIALIZE)
        assert status == 200 and "result" in messages[-1], f"{path}: {status} {messages}"


def authorized(form, status=200):
    """Returns a case: a request over TCP with this form of the header."""
    def case(broker):
        connection = http.client.HTTPConnection("127.0.0.1", broker.port, timeout=10)
        value = form.replace("TOKEN", broker.grant)
        connection.request("POST", "/mcp", json.dumps(INITIALIZE), {"Content-Type": "application/json", "Accept": ACCEPT, "Authorization": value})
        response = connection.getresponse()
        body = response.read().decode()
        assert response.status == status, f"{response.status} {body[:200]}"
        assert broker.grant not in body, "the response has the token"
        assert status == 200 or json.loads(body), "the reason is no JSON"
    return case


def discovery(target, method="GET"):
    """Returns a case: a probe for OAuth gets JSON with `error` and what to do."""
    def case(broker):
        connection = http.client.HTTPConnection("127.0.0.1", broker.port, timeout=10)
        connection.request(method, target, "{}" if method == "POST" else None, {"Content-Type": "application/json"})
        body = json.loads(connection.getresponse().read())
        assert isinstance(body.get("error"), str) and isinstance(body.get("error_description"), str), body
    return case


def one_byte_at_a_time(broker):
    """A request that arrives in single bytes is one request."""
    body = json.dumps(INITIALIZE).encode()
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: {ACCEPT}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(broker.path)
        for byte in head.encode() + body:
            connection.send(bytes([byte]))
        connection.settimeout(10)
        data = b""
        while piece := connection.recv(65536):
            data += piece
    assert data.startswith(b"HTTP/1.1 200"), data[:200]


JSON = {"Content-Type": "application/json"}

CASES = [
    ("honojs/middleware#1799", "Accept is application/json only", heard(JSON | {"Accept": "application/json"})),
    ("modelcontextprotocol/python-sdk#2349", "Accept is text/event-stream only", heard(JSON | {"Accept": "text/event-stream"})),
    ("masumi-network/Citadel#45", "Accept is */*", heard(JSON | {"Accept": "*/*"})),
    ("masumi-network/Citadel#45", "Accept is missing", heard(JSON)),
    ("modelcontextprotocol/typescript-sdk#2104", "Content-Type is missing: refused, with the header to send", heard({"Accept": ACCEPT}, 415)),
    ("Azure/fetch-event-source#1", "Content-Type has a charset", heard({"Accept": ACCEPT, "Content-Type": "application/json; charset=utf8"})),
    ("modelcontextprotocol/python-sdk#961", "the ID is text of digits", numbered('"1"')),
    ("kcaldas/genie#14", "the ID is beyond 2^53", numbered("1752485730123456789")),
    ("modelcontextprotocol/python-sdk#1025", "the ID is a UUID", numbered('"5e70c917-c5d7-416e-9daa-23bf521b7b82"')),
    ("modelcontextprotocol/python-sdk#1720", "the ID is 0", numbered("0")),
    ("damionrashford/RivalSearchMCP#5", "the ID is null", null_request),
    ("metoro-io/mcp-golang#134", "the version of initialize is 1.0", greeted(version="2025-11-25", protocolVersion="1.0")),
    ("modelcontextprotocol/rust-sdk#1209", "initialize asks for 2026-07-28", greeted(version="2025-11-25", protocolVersion="2026-07-28")),
    ("modelcontextprotocol/swift-sdk#262", "experimental has objects, and there are extensions", greeted(capabilities={"experimental": {"codex/auth-change": {}}, "extensions": {"x/y": {"v": 1}}})),
    ("ahdis/matchbox#455", "elicitation has a member", greeted(capabilities={"elicitation": {"form": {}}})),
    ("use-novamira/novamira#82", "the capabilities are an empty array", greeted(capabilities=[])),
    ("ian-cowley/MCPSqlServer#3", "clientInfo has no version", greeted(clientInfo={"name": "c"})),
    ("modelcontextprotocol/python-sdk#1025", "initialize has unknown members", greeted(sessionContext={}, clientInfo={"name": "mcs", "version": "1", "agentName": "x", "appId": "y"})),
    ("HarperFast/harper#1611", "a session sends no header of the version", without_version),
    ("zereight/gitlab-mcp#652", "the header has a version that nobody knows", strange_version),
    ("modelcontextprotocol/swift-sdk#13", "tools/list without params", without_params(None)),
    ("tmattio/ocaml-mcp#3", "tools/list with params of null", without_params("null")),
    ("DeusData/codebase-memory-mcp#1185", "a cursor of null", without_params('{"cursor": null, "_meta": null}')),
    ("modelcontextprotocol/typescript-sdk#2670", "a batch in 2025-06-18", batch),
    ("modelcontextprotocol/python-sdk#934", "a batch in 2025-03-26", old_batch),
    ("modelcontextprotocol/java-sdk#396", "a cancellation without an ID", cancelled()),
    ("modelcontextprotocol/java-sdk#396", "a cancellation of an unknown request", cancelled(requestId=99, reason=None)),
    ("DAWNCR0W/affine-mcp-server#301", "POST in an unknown session", forgotten("POST")),
    ("DAWNCR0W/affine-mcp-server#301", "DELETE of an unknown session", forgotten("DELETE")),
    ("cap-js/mcp#36", "GET before the handshake", get_first),
    ("PrefectHQ/fastmcp#1867", "the path ends with a slash", slash),
    ("PrefectHQ/fastmcp#2429", "the scheme is bearer in small letters", authorized("bearer TOKEN")),
    ("bytedance/deer-flow#5066", "the header has two spaces and one at its end", authorized("Bearer  TOKEN ")),
    ("kentcdodds/kody#1398", "the whole header was pasted as the token", authorized("Bearer Authorization: Bearer TOKEN", 401)),
    ("kentcdodds/kody#1398", "the token has no scheme", authorized("TOKEN", 401)),
    ("datagouv/datagouv-mcp#26", "a probe for OAuth metadata", discovery("/.well-known/oauth-protected-resource/mcp")),
    ("anthropics/claude-code#52158", "a registration of an OAuth client", discovery("/register", "POST")),
    ("yhirose/cpp-httplib#349", "the request arrives byte by byte", one_byte_at_a_time),
]

if __name__ == "__main__":
    run(CASES)
