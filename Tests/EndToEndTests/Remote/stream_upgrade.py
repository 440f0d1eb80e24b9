"""Clients of GET /v1/streams that write the request as bytes. The first argument selects the scenario.
SOCKET is the broker's unix socket, and ENDPOINT an endpoint that echoes.

  malformed SOCKET ENDPOINT     sends requests that must not change the protocol, each with a second request behind it
  valid SOCKET ENDPOINT         sends every form of a valid request, and one byte through each stream
  refused SOCKET ENDPOINT       sends refused requests with Upgrade, and prints how their connections end
  early SOCKET ENDPOINT         sends bytes of the stream before the answer, and prints how many of them come back
  hasty SOCKET ENDPOINT         leaves at every moment around the answer, in different ways
  leave SOCKET                  prints the port of an app; after a line of input the app stops to answer, and a client of
                                the endpoint `silent` waits; after one more line the client leaves
"""

import os
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "AccessControl"))
from api_client import rest, unix  # noqa: E402, the path comes first

UPGRADE = "Upgrade: patchbay-stream/1\r\n"
CONNECTION = "Connection: Upgrade\r\n"
BOTH = CONNECTION + UPGRADE
NEXT = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
JSON = "Content-Type: application/json\r\n"

# Fields, body and status; further members replace parts of the request line.
MALFORMED = [
    (BOTH, "", 426, {"version": "HTTP/1.0"}),
    ("Connection: keep-alive, Upgrade\r\n" + UPGRADE, "", 426, {"version": "HTTP/1.0"}),
    (UPGRADE, "", 426),
    ("Connection: keep-alive\r\n" + UPGRADE, "", 426),
    ("Connection: close\r\n" + UPGRADE, "", 426),
    ("Connection: upgraded\r\n" + UPGRADE, "", 426),
    ("Connection: no-upgrade, te\r\n" + UPGRADE, "", 426),
    ('Connection: "upgrade"\r\n' + UPGRADE, "", 426),
    ("Connection: \r\n" + UPGRADE, "", 426),
    (CONNECTION, "", 426),
    ("", "", 426),
    (CONNECTION + "Upgrade: \r\n", "", 426),
    (CONNECTION + "Upgrade: websocket\r\n", "", 426),
    (CONNECTION + "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n", "", 426),
    (CONNECTION + "Upgrade: patchbay-stream\r\n", "", 426),
    (CONNECTION + "Upgrade: patchbay-stream/2\r\n", "", 426),
    (CONNECTION + "Upgrade: patchbay-stream/1.0\r\n", "", 426),
    (CONNECTION + "Upgrade: patchbay-stream/1;q=1\r\n", "", 426),
    (CONNECTION + "Upgrade: patchbay-stream /1\r\n", "", 426),
    (CONNECTION + "Upgrade: " + "x, " * 7000 + "\r\n", "", {400, 431}),
    (BOTH + "Content-Length: 5\r\n", "hello", {400, 415}),
    (BOTH + JSON + "Content-Length: 2\r\n", "{}", 400),
    (BOTH + JSON + f"Content-Length: {len(NEXT) + 9}\r\n", "", 400),
    (BOTH + "Content-Length: -1\r\n", "", 400),
    (BOTH + "Content-Length: 0\r\nContent-Length: 2\r\n", "{}", 400),
    (BOTH + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", 400),
    (BOTH + "Transfer-Encoding: chunked\r\n", "0\r\n\r\n", 400),
    (BOTH + "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n", 400),
    (BOTH + JSON + "Transfer-Encoding: chunked\r\n", "fff\r\n", 400),
    (BOTH + "Transfer-Encoding: chunked\r\n", "zz\r\n", 400),
    (BOTH + "Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n", 400),
    (BOTH + "Transfer-Encoding: identity\r\n", "", 400),
    (CONNECTION + "Upgrade:\r\n patchbay-stream/1\r\n", "", 400),
    (CONNECTION + "Upgrade : patchbay-stream/1\r\n", "", 400),
    (CONNECTION + "Upgrade: patchbay-stream/1\x00\r\n", "", 400),
    (BOTH + "Host: localhost\r\n", "", 400),
    (BOTH + "Origin: http://page.test\r\n", "", 403),
    (BOTH, "", 405, {"method": "POST"}),
    (BOTH, "", {404, 405}, {"method": "HEAD"}),
    (BOTH, "", {400, 404, 405}, {"method": "CONNECT"}),
    (BOTH, "", 400, {"version": "HTTP/2.0"}),
    (BOTH, "", 400, {"version": "HTTP/1.7"}),
    (BOTH, "", 400, {"version": "http/1.1"}),
]

VALID = [
    BOTH,
    "connection: UPGRADE\r\nupgrade: Patchbay-Stream/1\r\n",
    "Connection: keep-alive , upgrade\r\n" + UPGRADE,
    "Connection: keep-alive\r\n" + BOTH,
    CONNECTION + "Upgrade: h2c, patchbay-stream/1\r\n",
    CONNECTION + "Upgrade: websocket\r\n" + UPGRADE,
    BOTH + "Content-Length: 0\r\n",
]


def request(endpoint, fields, method="GET", version="HTTP/1.1"):
    return f"{method} /v1/streams?endpoint={endpoint} {version}\r\nHost: localhost\r\n{fields}\r\n"


def head(caller):
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        part = caller.recv(1)
        if not part:
            break
        data += part
    return data


def statuses(answer):
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


def malformed(path, endpoint):
    wrong = 0
    for fields, body, expected, *more in MALFORMED:
        caller = unix(path)
        try:
            caller.sendall((request(endpoint, fields, **(more[0] if more else {})) + body + NEXT).encode())
            found = statuses(rest(caller))
        except socket.timeout:
            found = ["no end of the connection"]
        isRight = found[:1] and found[0] in (expected if isinstance(expected, set) else {expected})
        # Behind a request without an upgrade and without a body, the second request is one. In every other case it may
        # be refused once more, but it is never carried out.
        hasBody = "Content-Length" in fields or "Transfer-Encoding" in fields
        if not isRight or any(status != 400 for status in found[1:]) and (hasBody or found[0] != 426):
            wrong += 1
            print("WRONG", repr(fields[:80]), more, found, "instead of", expected)
    print(len(MALFORMED), "cases,", wrong, "wrong")


def valid(path, endpoint):
    for fields in VALID:
        caller = unix(path)
        caller.sendall(request(endpoint, fields).encode())
        answer = head(caller)
        status = statuses(answer)
        echo = b""
        if status == [101]:
            caller.sendall(b"x")
            caller.shutdown(socket.SHUT_WR)
            echo = rest(caller)
        print(*status, echo.decode())


def refused(path, endpoint):
    for target, fields in (
        ("/v1/streams?endpoint=unknown", BOTH), ("/v1/streams?device=1", BOTH), ("/v1/unknown", BOTH),
        ("/health", CONNECTION + "Upgrade: h2c\r\n"), ("/health", "Connection: Upgrade, keep-alive\r\nUpgrade: h2c\r\n"),
        (f"/v1/streams?endpoint={endpoint}", ""),
    ):
        caller = unix(path)
        caller.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode())
        if fields:
            answer = rest(caller)
            closes = any(line.lower() == b"connection: close" for line in answer.split(b"\r\n"))
            print(*statuses(answer), "close" if closes else "end without a notice")
        else:
            # The answer to a request without Upgrade keeps its connection.
            caller.sendall(NEXT.encode())
            print(*statuses(rest(caller)))


def early(path, endpoint):
    for first in VALID:
        for size in (1, 40_000, 400_000):
            data = bytes(number * 7 % 251 for number in range(size))
            # The first part arrives with the head, and the second one with it or during the dial.
            parts = data[: size // 2 + 1], data[size // 2 + 1 :]
            caller = unix(path)
            sender = threading.Thread(target=send, args=(caller, request(endpoint, first).encode() + parts[0], parts[1]))
            sender.start()
            status = statuses(head(caller))
            echo = b""
            while status == [101] and len(echo) < size:
                echo += caller.recv(65536)
            sender.join()
            caller.shutdown(socket.SHUT_WR)
            echo += rest(caller)
            print(*status, size, "bytes", "complete" if echo == data else f"{len(echo)} came back")


def send(caller, *parts):
    for part in parts:
        caller.sendall(part)


def hasty(path, endpoint):
    for number in range(300):
        caller = unix(path)
        caller.sendall(request(endpoint, BOTH).encode())
        time.sleep(number % 50 / 10_000)
        if number % 3 == 0:
            caller.shutdown(socket.SHUT_WR)
            rest(caller)
        elif number % 3 == 1:
            caller.sendall(b"x" * 40_000)
        caller.close()


def leave(path):
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    print("port", listener.getsockname()[1], flush=True)
    sys.stdin.readline()
    # Linux answers no further clients of a listener with a full queue.
    others = [socket.socket() for _ in range(4)]
    for other in others:
        other.setblocking(False)
        other.connect_ex(listener.getsockname())
    caller = unix(path)
    caller.sendall(request("silent", BOTH).encode())
    sys.stdin.readline()
    caller.close()
    print("left", flush=True)
    sys.stdin.readline()


globals()[sys.argv[1]](*sys.argv[2:])
