"""An app, an impostor of it, and their clients. The first argument selects the scenario.

  serve WORD                    a server that responds with WORD and prints when it receives bytes
  gush                          a server that sends without end
  taken SOCKET PORT ENDPOINT STREAMS   revokes the approval of an endpoint with busy tunnels and counts later bytes
  hold PORT                     sends a request, keeps the connection open, and prints how it ends
  bundle SOCKET PORT BUNDLE     prints the IDs of the endpoints that a grant for an app sees
  tunnel SOCKET PORT ENDPOINT   opens a tunnel with a grant and prints its port or the error status
"""

import json
import socket
import sys
import threading
import time

from api_client import ask, head, pair, tcp, unix


def flood(listener):
    """Sends to every client without end."""
    def serve(peer):
        try:
            while True:
                peer.sendall(b"x" * 16384)
        except OSError:
            pass
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


class Readers:
    """Reads every connection until it ends and records the time."""

    def __init__(self, callers):
        self.last, self.ended = [0.0] * len(callers), [0.0] * len(callers)
        self.threads = [threading.Thread(target=self.read, args=pair) for pair in enumerate(callers)]
        for thread in self.threads:
            thread.start()
        time.sleep(0.5)
        assert all(self.last), self.last

    def read(self, index, caller):
        try:
            while caller.recv(65536):
                self.last[index] = time.monotonic()
        except OSError:
            pass
        self.ended[index] = time.monotonic()

    def report(self, begin, isDone):
        """Call after the response of the request that closes the connections."""
        answered = time.monotonic()
        for thread in self.threads:
            thread.join(5)
        isCut = isDone and all(self.ended) and max(self.ended) < answered + 0.5
        print("cut" if isCut else f"WRONG {isDone} {self.ended}")
        print(f"figures: answered after {(answered - begin) * 1e3:.1f} ms, the last byte was read "
              f"{(max(self.last) - answered) * 1e3:+.1f} ms from then")


def gush():
    listener = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    print("listening on", listener.getsockname()[1], flush=True)
    flood(listener)


def taken(path, port, endpoint, count):
    _, token = pair(path, port, ("registry.read", "tunnel.open"))
    spec = {"local": "tcp:127.0.0.1:0", "target": {"endpoint": endpoint}, "noRebind": True, "persistent": True}
    ports = []
    for number in range(int(count)):
        opened = ask(tcp(port), "POST", "/v1/tunnels", spec, token) if number % 2 else ask(unix(path), "POST", "/v1/tunnels", spec)
        assert opened[0] == 201, opened
        ports.append(int(opened[1]["listenAddresses"][0].rsplit(":", 1)[1]))
    readers = Readers([tcp(p) for p in ports])
    begin = time.monotonic()
    status, _, _ = ask(unix(path), "DELETE", f"/v1/endpoints/{endpoint}/approval")
    readers.report(begin, status == 204)
    # The connections are closed by now; the tunnels' change to waiting follows.
    end = time.monotonic() + 5
    while time.monotonic() < end:
        tunnels = ask(unix(path), "GET", "/v1/tunnels")[1]["tunnels"]
        if all(t["state"]["name"] == "waiting" for t in tunnels):
            break
        time.sleep(0.02)
    print("standing:", len(tunnels), "waiting:", sum(t["state"]["name"] == "waiting" for t in tunnels))


def serve(word):
    def answer(peer):
        while asked := peer.recv(65536):
            print("bytes", flush=True)
            # What it is announced as, AppReveal, says so here.
            health = json.dumps({"status": "ok", "port": listener.getsockname()[1], "auth": "session-token"})
            said = health if asked.startswith(b"GET /health ") else word
            peer.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(said)}\r\n\r\n{said}".encode())

    listener = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    print("listening on", listener.getsockname()[1], flush=True)
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


def hold(port):
    caller = tcp(port)
    caller.settimeout(60)
    try:
        caller.sendall(head("GET", "/"))
        print("answered", caller.recv(65536).decode().split("\r\n")[-1], flush=True)
        print("ended" if not caller.recv(1) else "more", flush=True)
    except ConnectionResetError:
        print("cut", flush=True)


def bundle(path, port, name):
    _, token = pair(path, port, permissions={"scopes": ["registry.read"], "selector": {"bundles": [name]}})
    print([listed["id"] for listed in ask(tcp(port), "GET", "/v1/endpoints", token=token)[1]["endpoints"]])


def tunnel(path, port, endpoint):
    _, token = pair(path, port, ("registry.read", "tunnel.open"))
    spec = {"local": "tcp:127.0.0.1:0", "target": {"endpoint": endpoint}, "noRebind": True, "persistent": True}
    status, answer, _ = ask(tcp(port), "POST", "/v1/tunnels", spec, token)
    print(int(answer["listenAddresses"][0].rsplit(":", 1)[1]) if status == 201 else status)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
