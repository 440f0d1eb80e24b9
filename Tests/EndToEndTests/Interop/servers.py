"""Servers that answer in another form than MCP's: IDs, versions, sessions, notifications and HTTP."""

import gzip
import json
import zlib

from peer import HELLO, Server, run, works


def answered(change):
    """Returns a case with a server whose responses pass through `change(message, text)`."""
    def hook(request, message):
        if message and "id" in message and "method" in message:
            request.respond(200, change(message, request.server_side.reply(message)))
            return True
    return lambda broker: works(broker, hook=hook)


def edited(edit, methods=None):
    """Returns a case with a server whose responses are edited as JSON."""
    def change(message, text):
        value = json.loads(text)
        if methods is None or message["method"] in methods:
            edit(value)
        return json.dumps(value).encode()
    return answered(change)


def notified(status, body=b"", kind="application/json"):
    """Returns a case with a server that answers notifications like this."""
    def hook(request, message):
        if message and "id" not in message:
            request.respond(status, body, kind)
            return True
    return lambda broker: works(broker, hook=hook)


def listened(status, body=b"", kind="text/plain"):
    """Returns a case with a server that answers GET like this."""
    def hook(request, message):
        if message is None:
            request.respond(status, body, kind)
            return True
    return lambda broker: works(broker, hook=hook)


def typed(kind, encode=lambda text: text, headers=()):
    """Returns a case with a server that sends its responses with this content type."""
    def hook(request, message):
        if message and "id" in message and "method" in message:
            request.respond(200, encode(request.server_side.reply(message)), kind, headers)
            return True
    return lambda broker: works(broker, hook=hook)


def streamed(*form, split=None):
    """Returns a case with a server that sends events. `form` has the parts around the lines of a response."""
    def hook(request, message):
        if message and "id" in message and "method" in message:
            text = request.server_side.reply(message)
            stream = b"".join(part(text) if callable(part) else part for part in form)
            request.stream(*([stream] if split is None else split(stream)))
            return True
    return lambda broker: works(broker, hook=hook)


def redirected(status, target):
    def hook(request, message):
        if message and request.path == "/mcp":
            request.respond(status, b"", None, [("Location", target(request))])
            return True
    return lambda broker: works(broker, hook=hook, path="/mcp/")


def without_session(status):
    """A server that has lost its sessions answers with this status until the next handshake."""
    def case(broker):
        sessions, lost = [], []

        def hook(request, message):
            if message is None:
                return False
            if message.get("method") == "initialize":
                sessions.append(f"s{len(sessions)}")
                request.respond(200, request.server_side.reply(message), headers=[("Mcp-Session-Id", sessions[-1])])
                return True
            if request.headers.get("Mcp-Session-Id") in lost:
                request.respond(status, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}')
                return True
        server = Server(hook=hook, tools=[HELLO | {"annotations": {"readOnlyHint": True}}])
        client = broker.client(broker.add(server.port))
        assert "hello" in client.tools()
        assert not client.call(arguments={"x": "1"}).get("isError")
        lost += sessions
        result = client.call(arguments={"x": "2"})
        assert not result.get("isError"), f"after the loss the call returned {result}"
    return case


def strict_header(broker):
    """The server wants the version header already with initialize."""
    def hook(request, message):
        if message and not request.headers.get("MCP-Protocol-Version"):
            request.respond(400, b'{"error":"Missing MCP-Protocol-Version"}')
            return True
    works(broker, hook=hook)


def early_header(broker):
    """The server refuses a version header of initialize that it does not know."""
    def hook(request, message):
        known = ("2025-03-26", "2025-06-18", "2025-11-25")
        if message and request.headers.get("MCP-Protocol-Version", known[0]) not in known:
            request.respond(400, b'{"error":"Unsupported MCP-Protocol-Version"}')
            return True
        if message and message.get("method") == "initialize" and message["params"]["protocolVersion"] not in known:
            answer = json.loads(request.server_side.reply(message))
            answer["result"]["protocolVersion"] = known[1]
            request.respond(200, json.dumps(answer).encode())
            return True
    works(broker, hook=hook)


def null_error(broker):
    """An error without the ID of its request reaches the caller at once."""
    def hook(request, message):
        if message and message.get("method") == "tools/call":
            request.respond(200, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"the view is gone"}}')
            return True
    client = broker.client(broker.add(Server(hook=hook).port))
    answer = client.request("tools/call", {"name": "hello", "arguments": {}}, timeout=8)
    assert "the view is gone" in json.dumps(answer), answer


def always_zero(broker):
    """A response that belongs to no request is refused at once."""
    def hook(request, message):
        if message and "id" in message:
            request.respond(200, request.server_side.reply(message | {"id": 0}))
            return True
    client = broker.client(broker.add(Server(hook=hook).port))
    answer = client.request("tools/list", timeout=8)
    assert "error" in answer, answer


def failed_call(broker):
    """A call that gets 500 fails at once, with the status."""
    def hook(request, message):
        if message and message.get("method") == "tools/call":
            request.respond(500, b"Internal Server Error", "text/plain")
            return True
    client = broker.client(broker.add(Server(hook=hook).port))
    assert "500" in json.dumps(client.request("tools/call", {"name": "hello", "arguments": {}}, timeout=8))


def asked(*requests):
    """The server asks the client before it responds to a call, and waits for the response to its first question."""
    def case(broker):
        def hook(request, message):
            if message and message.get("method") == "tools/call":
                pieces = [b"data: " + json.dumps(one).encode() + b"\n\n" for one in requests]
                request.stream(*pieces, b"data: " + request.server_side.reply(message) + b"\n\n")
                return True
        works(broker, hook=hook)
    return case


def foreign(broker):
    """A redirect to another origin is not followed, and the error names the target."""
    def hook(request, message):
        if message:
            request.respond(307, b"", None, [("Location", "http://192.0.2.7:9/mcp")])
            return True
    client = broker.client(broker.add(Server(hook=hook).port), hello=False)
    assert "192.0.2.7" in json.dumps(client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {}}})[2]), "no target"


def ipv6(broker):
    """A server that listens on ::1 only is reached by that address."""
    server = Server(address="::1")
    client = broker.client(broker.add(server.port, address="::1"))
    assert "hello" in client.tools()


def data(text):
    return b"data: " + text + b"\n\n"


def lines(text):
    """The response, indented, in several data lines."""
    return b"".join(b"data: " + line + b"\n" for line in json.dumps(json.loads(text), indent=1).encode().split(b"\n")) + b"\n"


def bytewise(stream):
    return [stream[index:index + 1] for index in range(len(stream))]


def deflated(text):
    return zlib.compress(text)


SAME = lambda request: "/mcp/"
WHOLE = lambda request: f"http://{request.headers['Host']}/mcp/"
PING = {"jsonrpc": "2.0", "id": "a6f0-7", "method": "ping"}

CASES = [
    ("modelcontextprotocol/python-sdk#1720", "the ID comes back as text of the same digits", edited(lambda v: v.update(id=str(v["id"])))),
    ("awslabs/AutoCorrode#43", "the ID comes back as the number 1.0", answered(lambda m, t: t.replace(b'"id": %d' % m["id"], b'"id": %d.0' % m["id"]) if isinstance(m["id"], int) else t)),
    ("radareorg/radare2-mcp#68", "every response has the ID 0: refused at once", always_zero),
    ("helidon-io/helidon-mcp#65", "an error has no ID", null_error),
    ("asciimoo/hister#363", "serverInfo has no version", edited(lambda v: v["result"]["serverInfo"].pop("version"), ["initialize"])),
    ("ian-cowley/MCPSqlServer#3", "serverInfo is missing", edited(lambda v: v["result"].pop("serverInfo"), ["initialize"])),
    ("ian-cowley/MCPSqlServer#3", "the version is missing", edited(lambda v: v["result"].pop("protocolVersion"), ["initialize"])),
    ("IBM/WxMCPServer#3", "the version is a placeholder", edited(lambda v: v["result"].update(protocolVersion="%params/protocolVersion%"), ["initialize"])),
    ("DeusData/codebase-memory-mcp#1185", "the capabilities are empty, and there are tools", edited(lambda v: v["result"].update(capabilities={}), ["initialize"])),
    ("use-novamira/novamira#82", "the capabilities are an empty array", edited(lambda v: v["result"].update(capabilities=[]), ["initialize"])),
    ("HarperFast/harper#1611", "initialize needs the header of the version", strict_header),
    ("Effect-TS/effect#7388", "initialize is refused for a newer header", early_header),
    ("Quantum3-Labs/ARBuilder#2", "the member jsonrpc is missing", edited(lambda v: v.pop("jsonrpc"))),
    ("leehack/mcp_dart#238", "a result has an error of null", edited(lambda v: v.update(error=None))),
    ("modelcontextprotocol/typescript-sdk#2670", "a response is an array of one", answered(lambda m, t: b"[" + t + b"]")),
    ("modelcontextprotocol/python-sdk#1676", "a lost session gets 404", without_session(404)),
    ("modelcontextprotocol/python-sdk#1004", "a lost session gets 400", without_session(400)),
    ("PrefectHQ/fastmcp#2595", "a call that gets 500 fails at once", failed_call),
    ("modelcontextprotocol/rust-sdk#497", "a notification gets 204", notified(204, kind=None)),
    ("awslabs/mcp#3295", "a notification gets 200 and null", notified(200, b"null")),
    ("modelcontextprotocol/rust-sdk#849", "a notification gets 200 without a type", notified(200, kind=None)),
    ("patvice/ruby_llm-mcp#153", "a notification gets an object", notified(200, b'{"ok":true}')),
    ("softwaremill/chimp#53", "a notification is echoed", notified(200, b'{"jsonrpc":"2.0","method":"notifications/initialized"}')),
    ("modelcontextprotocol/ruby-sdk#84", "a notification gets an error", notified(200, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}')),
    ("modelcontextprotocol/typescript-sdk#1356", "202 has no content type", notified(202, kind=None)),
    ("modelcontextprotocol/typescript-sdk#1635", "GET gets 404", listened(404, b"Cannot GET /mcp")),
    ("modelcontextprotocol/typescript-sdk#1969", "GET gets 406", listened(406)),
    ("punkpeye/mcp-proxy#62", "GET gets 400", listened(400, b"No sessionId")),
    ("f/prompts.chat#1117", "GET gets a web page", listened(200, b"<html>hello</html>", "text/html")),
    ("modelcontextprotocol/python-sdk#1168", "307 adds a slash", redirected(307, WHOLE)),
    ("opensearch-project/opensearch-mcp-server-py#271", "308 has a relative target", redirected(308, SAME)),
    ("modelcontextprotocol/python-sdk#732", "301 adds a slash", redirected(301, WHOLE)),
    ("sparfenyuk/mcp-proxy#89", "a redirect to another host is named", foreign),
    ("Azure/fetch-event-source#1", "the stream has a charset", typed("text/event-stream;charset=UTF-8", data)),
    ("OpenAPITools/openapi-generator#12441", "JSON has no content type", typed(None)),
    ("OpenAPITools/openapi-generator#12441", "JSON is text/plain", typed("text/plain; charset=utf-8")),
    ("OpenAPITools/openapi-generator#12441", "events are application/json", typed("application/json", data)),
    ("OpenAPITools/openapi-generator#12441", "JSON is text/event-stream", typed("text/event-stream")),
    ("ArchiveTeam/wpull#14", "gzip that nobody asked for", typed("application/json", gzip.compress, [("Content-Encoding", "gzip")])),
    ("mnutt/davros#94", "deflate that nobody asked for", typed("application/json", deflated, [("Content-Encoding", "deflate")])),
    ("ArchiveTeam/wpull#14", "a stream with gzip", typed("text/event-stream", lambda t: gzip.compress(data(t)), [("Content-Encoding", "gzip")])),
    ("modelcontextprotocol/python-sdk#1672", "an event without data comes first", streamed(b"id: 7\nretry: 3000\ndata: \n\n", data)),
    ("openclaw/openclaw#52679", "an event has no data line", streamed(b"event: message\n\n", data)),
    ("modelcontextprotocol/php-sdk#401", "CR and LF end the lines", streamed(b"event: message\r\ndata: ", lambda t: t, b"\r\n\r\n")),
    ("hey-api/hey-api#3054", "CR ends the lines", streamed(b"event: message\rdata: ", lambda t: t, b"\r\r")),
    ("clacky-ai/openclacky#489", "each byte is a chunk", streamed(b"event: message\r\ndata: ", lambda t: t, b"\r\n\r\n", split=bytewise)),
    ("FellouAI/eko#287", "several data lines are one message", streamed(lines)),
    ("praxis-proxy/praxis#739", "no space after data:", streamed(b"data:", lambda t: t, b"\n\n")),
    ("praxis-proxy/praxis#739", "the stream ends without an empty line", streamed(b"data: ", lambda t: t, b"\n")),
    ("indragiek/Context#28", "the server pings without params first", asked(PING)),
    ("indragiek/Context#28", "the server asks for roots that nobody declared", asked({"jsonrpc": "2.0", "id": "r-1", "method": "roots/list"})),
    ("modelcontextprotocol/csharp-sdk#1390", "an unknown request and a log come first", asked(
        {"jsonrpc": "2.0", "id": 1, "method": "custom/question", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}},
    )),
    ("firecrawl/firecrawl-mcp-server#251", "the server listens on ::1 only", ipv6),
]

if __name__ == "__main__":
    run(CASES)
