#!/usr/bin/env python3
"""Checks what a grant permits and denies at the MCP endpoints.

  grants.py SOCKET PORT ID       requests of an owner, grants and anonymous clients to /mcp and /e/ID/mcp; prints the results
  grants.py limits SOCKET PORT ID  grants that exceed their share; prints the results
  grants.py session SOCKET       begins a session and prints its ID; continues it after each line of input
  grants.py queue SOCKET PORT ID revoked|gone  24 calls and the end of their grant or connections; prints when it has happened
  grants.py opening SOCKET PORT ID ROUNDS  grants that end while they open tunnels; prints the number of remaining tunnels
  grants.py ends SOCKET PORT     grants that end right after the response, all on one connection; prints the number of broken connections
"""
import http.client
import json
import socket
import sys
import threading
import time


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


def post(connection, target, method, params={}, **headers):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    headers = {key.replace("_", "-"): value for key, value in headers.items() if value}
    accept = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", target, body, accept | headers)
    answer = connection.getresponse()
    content = answer.read()
    return answer, json.loads(content) if content else None


def owner(connection, method, target, document):
    connection.request(method, target, json.dumps(document), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status < 300, content
    return json.loads(content) if content else None


def grant(connection, scopes, selector="all"):
    spec = {"permissions": {"scopes": scopes, "selector": selector}, "maxUses": 1, "lifetimeSeconds": 60}
    token = owner(connection, "POST", "/v1/invites", spec)["token"]
    issued = owner(connection, "POST", "/v1/invites/redeem", {"token": token, "client": "k" * 30, "name": "agent"})
    return "Bearer " + issued["token"], issued["grant"]["id"]


def tool(connection, name, arguments={}, token=None, target="/mcp"):
    _, answer = post(connection, target, "tools/call", {"name": name, "arguments": arguments}, Authorization=token)
    if "result" not in answer:
        return answer.get("status") or answer["error"]["code"]
    failed = answer["result"].get("isError", False)
    return ("error: " if failed else "ok: ") + answer["result"]["content"][0]["text"]


def access(path, port, id):
    mine = Unix(path)
    anyone = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
    answer, _ = post(anyone, "/mcp", "tools/list")
    print("anonymous", answer.status, answer.getheader("WWW-Authenticate"))
    for name, headers in (("host", {"Host": "evil.test"}), ("origin", {"Origin": "https://evil.test"})):
        print(name, post(anyone, "/mcp", "tools/list", **headers)[0].status)

    reader, reader_id = grant(mine, ["registry.read"])
    print("reader lists", len(post(anyone, "/mcp", "tools/list", Authorization=reader)[1]["result"]["tools"]))
    print("reader sees", tool(anyone, "endpoint_list", token=reader))
    print("reader calls", tool(anyone, "endpoint_call", {"endpoint": id, "name": "launch_context"}, reader))
    print("reader forwards", tool(anyone, "port_forward", {"action": "list"}, reader))
    print("reader at the app", tool(anyone, "launch_context", token=reader, target=f"/e/{id}/mcp"))
    caller, _ = grant(mine, ["endpoint.call"])
    print("caller calls", tool(anyone, "endpoint_call", {"endpoint": id, "name": "launch_context"}, caller)[:3])
    print("caller at the app", tool(anyone, "launch_context", token=caller, target=f"/e/{id}/mcp")[:3])
    other, _ = grant(mine, ["registry.read", "endpoint.call"], {"endpoints": ["somewhere-else"]})
    print("other sees", tool(anyone, "endpoint_list", token=other)[:8])
    print("other at the app", post(anyone, f"/e/{id}/mcp", "tools/list", Authorization=other)[0].status)
    opener, opener_id = grant(mine, ["tunnel.open"])
    opened = tool(anyone, "port_forward", {"action": "open", "endpoint": id}, opener)
    print("opener opens", opened.split()[0], opened.split()[-1])
    print("opener has", len(tool(anyone, "port_forward", {"action": "list"}, opener).split("\n")))
    owner(mine, "DELETE", f"/v1/grants/{opener_id}", None)
    print("tunnels then", tool(mine, "port_forward", {"action": "list"}))

    # A stream ends with its grant, before the response to the revocation.
    stream = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
    stream.request("GET", "/mcp", headers={"Accept": "text/event-stream", "Authorization": reader})
    answer = stream.getresponse()
    answer.readline()
    owner(mine, "DELETE", f"/v1/grants/{reader_id}", None)
    try:
        while answer.readline():
            pass
        print("stream ended")
    except (ConnectionError, http.client.IncompleteRead):
        print("stream cut")
    print("afterwards", post(anyone, "/mcp", "tools/list", Authorization=reader)[0].status)

    # A waiting call does not block others.
    slow = Unix(path)
    waiting = threading.Thread(target=lambda: tool(slow, "endpoint_wait", {"endpoint": "nobody", "timeoutSeconds": 2}))
    start = time.monotonic()
    waiting.start()
    print("meanwhile", tool(mine, "endpoint_pair", {"endpoint": id}).split(":")[0])
    print("at once", time.monotonic() - start < 1.5)
    waiting.join()


def ask(connection, method, target, document=None, token=None):
    headers = {"Authorization": token} if token else {}
    headers |= {"Content-Type": "application/json"} if document is not None else {}
    connection.request(method, target, None if document is None else json.dumps(document), headers)
    answer = connection.getresponse()
    content = answer.read()
    return answer.status, json.loads(content) if content else None


def limits(path, port, id):
    mine = Unix(path)
    anyone = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
    one, one_id = grant(mine, ["registry.read", "tunnel.open"], {"endpoints": [id]})
    other, _ = grant(mine, ["registry.read", "tunnel.open"], {"endpoints": ["somewhere-else"]})
    spec = {"local": "tcp:0", "target": {"endpoint": id}, "noRebind": True, "persistent": False}
    opened = [ask(anyone, "POST", "/v1/tunnels", spec, one)[0] for _ in range(63)]
    print("opened", len(opened), set(opened))
    print("held beyond", ask(anyone, "POST", "/v1/tunnels/ephemeral", [spec, spec], one)[1]["detail"].replace(one_id, "ID"))
    print("agent opens", tool(anyone, "port_forward", {"action": "open", "endpoint": id}, one)[:3])
    status, problem = ask(anyone, "POST", "/v1/tunnels", spec, one)
    print("beyond", status, problem["code"])
    print("agent beyond", tool(anyone, "port_forward", {"action": "open", "endpoint": id}, one).replace(one_id, "ID"))
    print("owner opens", ask(mine, "POST", "/v1/tunnels", spec, None)[0])
    print("closes one", tool(anyone, "port_forward", {"action": "close", "tunnel": "t1"}, one))
    print("and opens", ask(anyone, "POST", "/v1/tunnels", spec, one)[0])

    for name, token in (("one", one), ("other", other), ("owner", None)):
        said = ask(anyone if token else mine, "GET", "/v1/status", token=token)[1]
        print(name, "is told", said["endpoints"], said["tunnels"], len(said["sources"]) > 0, "pid" in said)

    # The server rejects a large body before it is sent.
    large = socket.create_connection(("127.0.0.1", int(port)), timeout=5)
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: {one}\r\nContent-Type: application/json\r\n"
    large.sendall(f"{head}Content-Length: 1000000000000\r\n\r\n".encode())
    print("large", large.recv(4096).split(b"\r\n")[0].decode())


def session(path):
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    answer, _ = post(Unix(path), "/mcp", "initialize", hello)
    id = answer.getheader("Mcp-Session-Id")
    print(id, flush=True)
    for _ in sys.stdin:
        answer, said = post(Unix(path), "/mcp", "tools/list", Mcp_Session_Id=id, MCP_Protocol_Version="2025-06-18")
        print(answer.status, len(said["result"]["tools"]), flush=True)


def ends(path, port):
    broken = []

    def run():
        mine, shared = Unix(path), http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
        for _ in range(40):
            reader, id = grant(mine, ["registry.read"])
            try:
                tool(shared, "endpoint_list", token=reader)
                owner(mine, "DELETE", f"/v1/grants/{id}", None)
                post(shared, "/mcp", "tools/list")
            except (ConnectionError, http.client.HTTPException) as error:
                broken.append(error)
                shared.close()

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("broken", len(broken))


def queue(path, port, id, end):
    """Makes 24 calls of one app, which runs four per grant at a time; each takes 1.5 s."""
    mine = Unix(path)
    token, grant_id = grant(mine, ["endpoint.call"])
    body = json.dumps({"tool": "wait", "arguments": {"seconds": 1.5}}).encode()
    head = (f"POST /v1/endpoints/{id}/call HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n")
    callers = []
    for number in range(24):
        if number == 4:
            # These calls reach the app.
            time.sleep(0.3)
        callers.append(socket.create_connection(("127.0.0.1", int(port)), timeout=5))
        callers[-1].sendall(head.encode() + body)
    sys.stdin.readline()
    if end == "revoked":
        owner(mine, "DELETE", f"/v1/grants/{grant_id}", None)
    else:
        # The waiting calls disconnect first: a free slot goes to a call whose disconnect the broker has not read yet.
        for caller in callers[4:]:
            caller.close()
        time.sleep(0.2)
        for caller in callers[:4]:
            caller.close()
    print("over", flush=True)


def opening(path, port, id, rounds):
    mine, others = Unix(path), [http.client.HTTPConnection("127.0.0.1", int(port), timeout=20) for _ in range(4)]
    spec = {"local": "tcp:0", "target": {"endpoint": id}, "noRebind": True, "persistent": False}
    opened, left, random = [], 0, __import__("random").Random(7)

    def run(connection, token):
        try:
            opened.append(ask(connection, "POST", "/v1/tunnels", spec, token)[0])
        except (ConnectionError, http.client.HTTPException):
            connection.close()

    for _ in range(int(rounds)):
        token, grant_id = grant(mine, ["tunnel.open"])
        threads = [threading.Thread(target=run, args=(connection, token)) for connection in others]
        for thread in threads:
            thread.start()
        time.sleep(random.random() * 0.02)
        owner(mine, "DELETE", f"/v1/grants/{grant_id}", None)
        left += len(ask(mine, "GET", "/v1/tunnels")[1]["tunnels"])
        for thread in threads:
            thread.join()
    print("left", left, "some opened", 0 < opened.count(201) < 4 * int(rounds))


if sys.argv[1] == "queue":
    queue(*sys.argv[2:])
elif sys.argv[1] == "opening":
    opening(*sys.argv[2:])
elif sys.argv[1] == "session":
    session(sys.argv[2])
elif sys.argv[1] == "ends":
    ends(*sys.argv[2:])
elif sys.argv[1] == "limits":
    limits(*sys.argv[2:])
else:
    access(*sys.argv[1:])
