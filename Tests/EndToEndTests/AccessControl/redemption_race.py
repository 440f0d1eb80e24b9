"""Many clients that redeem the same invites at once.

  broker SOCKET PORT INVITES RACERS   each racer redeems each invite, over both listeners of a broker
  control INVITES RACERS              the same at a test server that checks first and writes later

Racers come in pairs with one key, like a client that retries after a lost response; the two use different listeners. Prints the
number of requests, of invites that were redeemed, of invites redeemed by two racers, of repeated equal responses, of refusals, and
of other responses.
"""

import http.server
import json
import os
import signal
import socket
import socketserver
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
from api_client import CLIENT, tcp, unix


class Connection:
    """A persistent connection."""

    def __init__(self, caller):
        caller.settimeout(600)
        self.caller = caller
        self.data = b""

    def ask(self, method, target, document=None):
        body = b"" if document is None else json.dumps(document).encode()
        kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
        self.caller.sendall(f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n{kind}\r\n".encode() + body)
        while (end := self.data.find(b"\r\n\r\n")) < 0:
            self.more()
        first, *fields = self.data[:end].decode().lower().split("\r\n")
        length = next(int(field.split(":")[1]) for field in fields if field.startswith("content-length:"))
        while len(self.data) < end + 4 + length:
            self.more()
        content, self.data = self.data[end + 4:end + 4 + length], self.data[end + 4 + length:]
        return int(first.split()[1]), content

    def more(self):
        part = self.caller.recv(1 << 20)
        assert part, "the connection was closed"
        self.data += part


def run(number, listeners, tokens, start, result):
    line = Connection(listeners[number % len(listeners)]())
    os.read(start, 1)
    client, won, refused, other = CLIENT + f"{number // 2:04}", [], 0, 0
    for index, token in enumerate(tokens):
        status, content = line.ask("POST", "/v1/invites/redeem", {"token": token, "client": client, "name": "racer"})
        if status == 201:
            won.append((index, json.loads(content)["token"]))
        elif status in (401, 429):
            refused += 1
        else:
            other += 1
    with open(result, "w") as file:
        json.dump((won, refused, other), file)


def race(listeners, tokens, racers):
    holders, again, refused, other = {}, 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        start, go = os.pipe()
        children = []
        for number in range(racers):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    os.close(go)
                    run(number, listeners, tokens, start, f"{folder}/{number}")
                    status = 0
                finally:
                    os._exit(status)
            children.append(child)
        time.sleep(0.5)
        began = time.monotonic()
        os.close(go)
        for child in children:
            assert os.waitpid(child, 0)[1] == 0, "a racer fell"
        took = time.monotonic() - began
        for number in range(racers):
            with open(f"{folder}/{number}") as file:
                won, lost, strange = json.load(file)
            refused, other = refused + lost, other + strange
            for index, token in won:
                tickets = holders.setdefault(index, set())
                again += token in tickets
                tickets.add(token)
    twice = sum(len(tickets) > 1 for tickets in holders.values())
    print(f"{racers * len(tokens)} requests: {len(holders)} won, {twice} won twice, {other} other")
    print(f"{again} again, {refused} refused")
    print(f"figures: {took:.1f} s, {racers * len(tokens) / took:.0f} requests/s")


def broker(path, port, invites, racers):
    owner = Connection(unix(path))
    spec = {"permissions": {"scopes": ["registry.read"], "selector": "all"}, "lifetimeSeconds": 86400}
    tokens = []
    for _ in range(int(invites)):
        status, content = owner.ask("POST", "/v1/invites", spec)
        assert status == 201, content
        tokens.append(json.loads(content)["token"])
    race([lambda: unix(path), lambda: tcp(port), lambda: tcp(port, "::1")], tokens, int(racers))
    # Reconnects, because an idle connection is closed after 1 min.
    grants = json.loads(Connection(unix(path)).ask("GET", "/v1/grants")[1])["grants"]
    print(len(grants), "grants,", len({grant["invite"] for grant in grants}), "invites")


class CheckThenWrite(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    holders = {}

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        holder = self.holders.get(asked["token"])
        if holder is None:
            # Where a store would wait for its disk.
            time.sleep(0.0005)
            self.holders[asked["token"]] = holder = asked["client"]
        isRight = holder == asked["client"]
        body = json.dumps({"token": asked["token"] + holder}).encode()
        self.send_response(201 if isRight else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 256


class TCPServer(http.server.ThreadingHTTPServer):
    request_queue_size = 256


def control(invites, racers):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/control.sock"
        servers = [UnixServer(path, CheckThenWrite), TCPServer(("127.0.0.1", 0), CheckThenWrite)]
        port = servers[1].server_address[1]
        child = os.fork()
        if child == 0:
            for server in servers:
                threading.Thread(target=server.serve_forever).start()
            threading.Event().wait()
        race([lambda: unix(path), lambda: tcp(port)], [f"t{number}" for number in range(int(invites))], int(racers))
        os.kill(child, signal.SIGKILL)


globals()[sys.argv[1]](*sys.argv[2:])
