"""An MCP server with the tools, resources and prompts that MCP's conformance scenarios need.

Usage: app.py PORT legacy|modern   Speaks 2025-11-25 with sessions, or 2026-07-28, at /mcp. The names of tools, resources and
prompts are those of the official suite, which can therefore run against this server too.
"""

import json
import queue
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from app_tools import (
    IMAGE, MODERN_TOOLS, TOOLS, InputRequired, Refusal, elicitation, embedded, encoded, extra_prompts, extra_tools,
    listeners, needs, png, text,
)

MODERN = sys.argv[2] == "modern"
VERSION = "2026-07-28" if MODERN else "2025-11-25"
META = "io.modelcontextprotocol/"
INFO = {"name": "conformance-app", "version": "1"}
CAPABILITIES = {
    "tools": {"listChanged": True}, "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True}, "completions": {}, "logging": {},
}
ALL_TOOLS = TOOLS | MODERN_TOOLS if MODERN else TOOLS
CACHED = ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read", "server/discover"]
# The responses that the client sends to requests of this server, by ID, and the capabilities of the sessions.
answers = {}
sessions = {}

RESOURCES = [
    {"uri": "test://static-text", "name": "text", "description": "A text", "mimeType": "text/plain"},
    {"uri": "test://static-binary", "name": "binary", "description": "A picture", "mimeType": "image/png"},
    {"uri": "test://watched-resource", "name": "watched", "description": "A watched text", "mimeType": "text/plain"},
]
TEMPLATE = {"uriTemplate": "test://template/{id}/data", "name": "template", "description": "Data of an ID"}
PROMPTS = [
    {"name": "test_simple_prompt", "description": "A prompt"},
    {"name": "test_prompt_with_arguments", "description": "A prompt with arguments",
     "arguments": [{"name": "arg1", "required": True}, {"name": "arg2", "required": True}]},
    {"name": "test_prompt_with_embedded_resource", "description": "A prompt with a resource",
     "arguments": [{"name": "resourceUri", "required": True}]},
    {"name": "test_prompt_with_image", "description": "A prompt with a picture"},
]
INPUT_PROMPT = {"name": "test_input_required_result_prompt", "description": "A prompt that asks"}


class Call:
    """One request, and the ways to reach its client."""

    def __init__(self, handler, message):
        self.handler = handler
        self.params = message.get("params") or {}
        self.arguments = self.params.get("arguments") or {}
        meta = self.params.get("_meta") or {}
        self.token = meta.get("progressToken")
        self.level = meta.get(META + "logLevel")
        self.capabilities = meta.get(META + "clientCapabilities") or sessions.get(handler.headers.get("Mcp-Session-Id"), {})
        responses = self.params.get("inputResponses")
        self.responses = responses if isinstance(responses, dict) else {}
        self.state = self.params.get("requestState")

    def notify(self, method, params):
        if not (MODERN and method == "notifications/message" and self.level is None):
            self.handler.event({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, capability, request):
        if capability not in self.capabilities:
            raise ValueError(f"the client lacks {capability}")
        number = str(uuid.uuid4())
        answers[number] = queue.Queue()
        self.handler.event({"jsonrpc": "2.0", "id": number} | request)
        answer = answers[number].get(timeout=10)
        if "error" in answer:
            raise ValueError(answer["error"]["message"])
        return answer["result"]


def contents(uri):
    if uri in ("test://static-text", "test://watched-resource"):
        return {"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."}
    if uri == "test://static-binary":
        return {"uri": uri, "mimeType": "image/png", "blob": encoded(png())}
    if uri.startswith("test://template/") and uri.endswith("/data"):
        number = uri.split("/")[3]
        data = {"id": number, "templateTest": True, "data": f"Data for ID: {number}"}
        return {"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}
    raise Refusal(-32602 if MODERN else -32002, "Resource not found", {"uri": uri})


def prompt(call):
    name, arguments = call.params.get("name"), call.arguments

    def user(content):
        return {"role": "user", "content": content}

    if name == "test_simple_prompt":
        return [user(text("This is a simple prompt for testing."))]
    if name == "test_prompt_with_arguments":
        return [user(text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"))]
    if name == "test_prompt_with_embedded_resource":
        resource = embedded(arguments["resourceUri"], "text/plain", "Embedded resource content for testing.")
        return [user(resource), user(text("Please process the embedded resource above."))]
    if name == "test_prompt_with_image":
        return [user(IMAGE), user(text("Please analyze the image above."))]
    if name == INPUT_PROMPT["name"] and MODERN:
        request = elicitation("What context should the prompt use?", context={"type": "string"})
        return [user(text(json.dumps(needs(call, "user_context", request))))]
    raise Refusal(-32602, "unknown prompt")


def result(method, call):
    if method == "initialize" and not MODERN:
        return {"protocolVersion": VERSION, "capabilities": CAPABILITIES, "serverInfo": INFO}
    if method == "server/discover" and MODERN:
        return {"supportedVersions": [VERSION], "capabilities": CAPABILITIES}
    if method == "tools/list":
        tools = [
            {"name": name, "description": name.replace("_", " "), "inputSchema": schema or {"type": "object"}}
            for name, (schema, _) in ALL_TOOLS.items()
        ]
        return {"tools": tools + extra_tools}
    if method == "tools/call":
        name = call.params.get("name")
        if name not in ALL_TOOLS:
            raise Refusal(-32602, f"unknown tool: {name}")
        try:
            return {"content": ALL_TOOLS[name][1](call)}
        except (ValueError, KeyError) as error:
            return {"content": [text(str(error))], "isError": True}
    if method == "resources/list":
        return {"resources": RESOURCES}
    if method == "resources/templates/list":
        return {"resourceTemplates": [TEMPLATE]}
    if method == "resources/read":
        return {"contents": [contents(call.params.get("uri", ""))]}
    if method == "prompts/list":
        return {"prompts": PROMPTS + ([INPUT_PROMPT] if MODERN else []) + extra_prompts}
    if method == "prompts/get":
        return {"messages": prompt(call)}
    if method == "completion/complete":
        return {"completion": {"values": [], "total": 0, "hasMore": False}}
    if method in ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe") and not MODERN:
        return {}
    raise Refusal(-32601, "unknown method", status=404)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    streaming = False

    def log_message(self, *_):
        pass

    def head(self, status, kind=None, length=None, session=None):
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        if session:
            self.send_header("Mcp-Session-Id", session)
        if length is None:
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def reply(self, message, status=200, session=None):
        if self.streaming:
            return self.event(message)
        body = json.dumps(message).encode()
        self.head(status, "application/json", len(body), session)
        self.wfile.write(body)

    def event(self, message):
        if not self.streaming:
            self.streaming = True
            self.head(200, "text/event-stream")
        self.wfile.write(b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n")
        self.wfile.flush()

    def do_DELETE(self):
        self.head(200, length=0)

    def do_GET(self):
        if MODERN:
            return self.head(405, length=0)
        events = queue.Queue()
        kinds = {"toolsListChanged", "promptsListChanged"}
        self.stream(kinds, events, lambda method, params: {"jsonrpc": "2.0", "method": method, "params": params})

    def stream(self, kinds, events, message):
        listeners.append((kinds, events))
        self.streaming = True
        self.head(200, "text/event-stream")
        try:
            while True:
                try:
                    self.event(message(*events.get(timeout=1)))
                except queue.Empty:
                    self.wfile.write(b": idle\n\n")
                    self.wfile.flush()
        except OSError:
            listeners.remove((kinds, events))

    def listen(self, message):
        wanted = message["params"].get("notifications") or {}
        kinds = {kind for kind, value in wanted.items() if value is True}
        mark = {META + "subscriptionId": message["id"]}
        events = queue.Queue()
        accepted = {kind: True for kind in kinds}
        events.put(("notifications/subscriptions/acknowledged", {"notifications": accepted}))
        self.stream(
            kinds, events,
            lambda method, params: {"jsonrpc": "2.0", "method": method, "params": params | {"_meta": mark}},
        )

    def do_POST(self):
        self.streaming = False
        message = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        method = message.get("method")
        if method is None:
            answers.pop(message["id"]).put(message)
            return self.head(202, length=0)
        if "id" not in message:
            return self.head(202, length=0)
        session = None
        if method == "initialize":
            session = str(uuid.uuid4())
            sessions[session] = (message.get("params") or {}).get("capabilities", {})
        if method == "subscriptions/listen" and MODERN:
            return self.listen(message)
        response = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            outcome = result(method, Call(self, message))
            if MODERN:
                hints = {"ttlMs": 0, "cacheScope": "private"} if method in CACHED else {}
                outcome = {"resultType": "complete"} | outcome | hints | {"_meta": {META + "serverInfo": INFO}}
            self.reply(response | {"result": outcome}, session=session)
        except InputRequired as required:
            self.reply(response | {"result": required.result})
        except Refusal as refusal:
            self.reply(response | {"error": refusal.error}, refusal.status)


class Server(ThreadingHTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
print("ready", server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
