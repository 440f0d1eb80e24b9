"""Every use of an app, while the access to the app ends. WAY is the way in which it ends:

  rm          an owner removes an endpoint that an owner added
  unapprove   an owner revokes the approval of an advertised app
  reload      a reload of the configuration removes the endpoint
  registrar   an owner revokes the grant with which the app registered itself
  revoke      an owner revokes the grant of the client
  expire      the grant of the client expires
  deny        an owner denies the access that the client has asked for

  access_end.py WAY SOCKET PORT PID CONFIGURATION

The uses: calls in progress and in the queue over the HTTP API and at the app's MCP server, a connection of a tunnel, a
connection of a tunnel that ends with its request, and a stream. The first four ways end the uses of an owner, too. A denial
ends no use: each one is tried with what the client has after it.
Prints what happens after the end was answered.
"""

import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
from api_client import CLIENT, ask, head, pair, tcp, unix

WAY, PATH, PORT, BROKER, CONFIGURATION = sys.argv[1:]
CALLS = 24
arrivals, flooded = [], []


class App(http.server.BaseHTTPRequestHandler):
    """An MCP server with a slow tool, and a path whose answer has no end."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if request["method"] == "tools/call":
            arrivals.append(time.monotonic())
            time.sleep(0.3)
        result = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "app", "version": "1"}},
            "tools/list": {"tools": [{"name": "tap", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "tapped"}]},
        }.get(request["method"])
        said = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"]} | said).encode() if "id" in request else b""
        try:
            self.send_response(200 if body else 202)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            pass

    def do_GET(self):
        flooded.append(self.connection)
        try:
            self.send_response(200)
            self.end_headers()
            while True:
                self.wfile.write(b"x" * 1000)
                time.sleep(0.001)
        except OSError:
            self.close_connection = True

    def log_message(self, *_):
        pass


class Reader(threading.Thread):
    """Reads a connection to its end, and remembers when the last byte came."""

    def __init__(self, connection):
        super().__init__(daemon=True)
        self.connection, self.count, self.last, self.isOpen = connection, 0, 0, True
        connection.settimeout(30)
        self.start()

    def run(self):
        try:
            while data := self.connection.recv(65536):
                self.count, self.last = self.count + len(data), time.monotonic()
        except OSError:
            pass
        self.isOpen = False


def wait_until(what, condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not {what}"
        time.sleep(0.01)


def owner(method, target, document=None, expected=(200, 201, 204)):
    status, answer, content = ask(unix(PATH), method, target, document)
    assert status in expected, (method, target, status, content)
    return answer


def endpoint(id):
    return ask(unix(PATH), "GET", f"/v1/endpoints/{id}")


def listed(port):
    """Returns the ID of the endpoint at a port."""
    found = []
    def isListed():
        found[:] = [e["id"] for e in owner("GET", "/v1/endpoints")["endpoints"] if any(r["port"] == port for r in e["routes"])]
        return found
    wait_until("listed", isListed)
    return found[0]


def shared(port):
    """Makes the app known to the broker, and returns its ID and a function that ends the access to it."""
    if WAY == "unapprove":
        publisher = subprocess.Popen(["avahi-publish-service", "Shop", "_mcp._tcp", str(port), "path=/mcp"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        threading.Thread(target=publisher.wait, daemon=True).start()
        id = listed(port)
        address = endpoint(id)[1]["routes"][0]["address"]
        owner("PUT", f"/v1/endpoints/{id}/approval", {"address": address})
        return id, lambda _: owner("DELETE", f"/v1/endpoints/{id}/approval")
    if WAY == "registrar":
        grant, token = pair(PATH, PORT, ("endpoint.register",))
        app = {"app": "com.example.shop", "port": port, "protocol": "mcp"}
        status, registration, _ = ask(unix(PATH), "POST", "/v1/registrations", app, token)
        assert status == 201, registration
        id = registration["endpoint"]
        for method, target in (("DELETE", f"/v1/endpoints/{id}"), ("DELETE", f"/v1/endpoints/{id}/approval")):
            status, problem, _ = ask(unix(PATH), method, target)
            assert status == 409 and f"patchbay revoke {grant}" in problem["hint"], problem
        return id, lambda _: owner("DELETE", f"/v1/grants/{grant}")
    if WAY == "reload":
        with open(CONFIGURATION) as file:
            before = file.read()
        table = f'\n[[endpoint]]\nname = "Shop"\nkind = "mcp"\naddress = "127.0.0.1"\nport = {port}\n'
        def write(text):
            with open(CONFIGURATION, "w") as file:
                file.write(text)
            os.kill(int(BROKER), signal.SIGHUP)
        write(before + table)
        id = listed(port)
        def end(_):
            write(before)
            wait_until("removed", lambda: not (endpoint(id)[1] or {}).get("routes"))
            # A reload has no answer.
            time.sleep(0.2)
        return id, end
    static = {"name": "Shop", "kind": "mcp", "address": "127.0.0.1", "port": port}
    id = owner("POST", "/v1/endpoints", static)["id"]
    return id, {
        "rm": lambda _: owner("DELETE", f"/v1/endpoints/{id}"),
        "deny": lambda _: None,
        "revoke": lambda grant: owner("DELETE", f"/v1/grants/{grant}"),
        "expire": lambda grant: wait_until("expired", lambda: owner("GET", f"/v1/grants/{grant}").get("endReason")),
    }[WAY]


def denied(id):
    """Asks for access, lets an owner deny it, and tries every use with all that the client then has."""
    wanted = {"name": "test", "permissions": {"scopes": ["registry.read", "endpoint.call", "tunnel.open"], "selector": "all"}}
    asked = owner("POST", "/v1/access-requests", wanted)
    owner("POST", f"/v1/access-requests/{asked['request']['userCode']}/deny")
    poll = {"deviceCode": asked["deviceCode"], "client": CLIENT}
    states = [ask(unix(PATH), "POST", "/v1/access-requests/poll", poll)[:2] for _ in range(2)]
    assert states[0] == (200, {"state": "denied"}) and states[1][0] == 401, states
    spec = {"local": "tcp:127.0.0.1:0", "target": {"endpoint": id}, "noRebind": True, "persistent": False}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "tap"}}
    calls = [("POST", f"/v1/endpoints/{id}/call", {"tool": "tap"}), ("POST", f"/e/{id}/mcp", message)]
    connections = [("POST", "/v1/tunnels", spec), ("POST", "/v1/tunnels/ephemeral", [spec]),
                   ("GET", f"/v1/streams?endpoint={id}", None)]
    accepted = {"calls": 0, "connections": 0}
    for token in (None, asked["deviceCode"]):
        for kind, uses in (("calls", calls), ("connections", connections)):
            for method, target, document in uses:
                status = ask(tcp(PORT), method, target, document, token)[0]
                accepted[kind] += status != 401
    listed = owner("GET", "/v1/tunnels")["tunnels"]
    print(f"{len(flooded)} of {len(connections)} connections carry bytes, {accepted['connections'] + len(listed)} are open")
    print(f"{len(arrivals)} calls reach the app, {accepted['calls']} wait")


def begin(connect, token, id):
    """Begins every use of the app as one client. Returns the connections that carry bytes, and those that wait."""
    more = f"Authorization: Bearer {token}\r\n" if token else ""
    def request(method, target, document=None, fields=""):
        connection = connect()
        body = b"" if document is None else json.dumps(document).encode()
        connection.sendall(head(method, target, body, more + fields))
        return connection
    flood = b"GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n"
    spec = {"local": "tcp:127.0.0.1:0", "target": {"endpoint": id}, "noRebind": True, "persistent": False}
    tunnel = ask(connect(), "POST", "/v1/tunnels", spec, token)[1]
    ephemeral = request("POST", "/v1/tunnels/ephemeral", [spec])
    said = b""
    while b"\n\n" not in said.partition(b"listenAddresses")[2]:
        part = ephemeral.recv(65536)
        assert part, said
        said += part
    data = next(line for line in said.decode().splitlines() if line.startswith("data:"))
    moving = []
    for opened in (tunnel, json.loads(data[5:])[0]):
        moving.append(tcp(opened["listenAddresses"][0].rsplit(":", 1)[1]))
        moving[-1].sendall(flood)
    upgrade = "Connection: Upgrade\r\nUpgrade: patchbay-stream/1\r\n"
    stream = request("GET", f"/v1/streams?endpoint={id}", fields=upgrade)
    answer = stream.recv(65536)
    assert answer.startswith(b"HTTP/1.1 101 "), answer
    stream.sendall(flood)
    moving.append(stream)
    call = {"tool": "tap", "timeoutSeconds": 30}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "tap"}}
    waiting = [request("POST", f"/v1/endpoints/{id}/call", call) for _ in range(CALLS)]
    waiting += [request("POST", f"/e/{id}/mcp", message, "Accept: application/json\r\n") for _ in range(CALLS // 2)]
    return [Reader(connection) for connection in moving], [Reader(connection) for connection in waiting], ephemeral


def main():
    app = http.server.ThreadingHTTPServer(("127.0.0.1", 0), App)
    app.daemon_threads = True
    threading.Thread(target=app.serve_forever, daemon=True).start()
    id, end = shared(app.server_port)
    if WAY == "deny":
        return denied(id)
    terms = {"grantLifetimeSeconds": 6} if WAY == "expire" else {}
    grant, token = pair(PATH, PORT, ("registry.read", "endpoint.call", "tunnel.open"), **terms)
    clients = [begin(lambda: tcp(PORT), token, id)]
    if WAY not in ("revoke", "expire"):
        clients.append(begin(lambda: unix(PATH), None, id))
    moving = [reader for client in clients for reader in client[0]]
    waiting = [reader for client in clients for reader in client[1]]
    wait_until("flowing", lambda: all(reader.count > 0 for reader in moving))
    wait_until("called", lambda: arrivals)
    if WAY != "expire":
        # All calls are with the broker now. One that comes later waits for an app that is offline after a reload.
        time.sleep(1)
        assert any(reader.isOpen and reader.count == 0 for reader in waiting), "no call waits"
    end(grant)
    answered = time.monotonic()
    time.sleep(1.5)
    late = sum(reader.last > answered + 0.05 for reader in moving)
    print(f"{late} of {len(moving)} connections carry bytes, {sum(reader.isOpen for reader in moving)} are open")
    print(f"{sum(time > answered for time in arrivals)} calls reach the app,",
          f"{sum(reader.isOpen and reader.count == 0 for reader in waiting)} wait")


main()
