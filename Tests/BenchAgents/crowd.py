"""Many apps in one process, each at its own port, with a tool list as long as that of AppReveal: 45 tools, 20 kB."""
import http.server
import json
import threading

TOOLS = [{
    "name": "tool_%02d" % number,
    "description": "Does what tool %d of an app does, and says in a sentence or two when an agent should use it. " % number,
    "inputSchema": {"type": "object", "required": ["element_id"], "properties": {
        "element_id": {"type": "string", "description": "The accessibility identifier of the element"},
        "text": {"type": "string", "description": "What is typed into it"},
        "timeout": {"type": "number", "description": "How many seconds to wait for it"}}},
} for number in range(45)]


class Member(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        results = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                  "serverInfo": {"name": "AppReveal", "version": "0.9.1"}},
                   "tools/list": {"tools": TOOLS}}
        if "id" not in request:
            return self.answer(204, b"")
        outcome = ({"result": results[request["method"]]} if request["method"] in results else
                   {"error": {"code": -32601, "message": "Method not found"}})
        self.answer(200, json.dumps({"jsonrpc": "2.0", "id": request["id"]} | outcome).encode())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Crowd:
    def __init__(self, count):
        self.servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Member) for _ in range(count)]
        self.ports = [server.server_port for server in self.servers]
        for server in self.servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def stop(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()
