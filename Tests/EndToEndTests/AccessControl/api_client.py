"""HTTP clients of the broker for the access control tests. The first argument selects the scenario.
SOCKET and PORT are the broker's listeners.

  refusals SOCKET PORT          sends every kind of invalid token and compares the responses byte by byte
  border SOCKET PORT            sends malformed requests as bytes
  names SOCKET PORT             sends requests with every kind of host name, with and without a token
  pages SOCKET PORT             sends requests as web pages do, with and without a token
  exposed SOCKET PORT           sends tokens in URLs and cookies
  slashes SOCKET PORT           deletes paths with an empty ID and checks what is left
  streams SOCKET PORT COUNT     keeps COUNT event streams of one grant open, and sends requests with another grant and with none
  owners SOCKET PORT            opens event streams and idle connections as an owner, and sends requests beside them
  silent PORT COUNT             sends requests without a token on COUNT connections, keeps them open, and sends one more
  slow PORT                     sends half a request head on many connections and prints how they end
  expiry SOCKET PORT            lets a grant expire under an event stream and prints the delay of its end
  show PORT                     sends each token from standard input and prints the response status
  beg SOCKET                    requests access, prints its code, and after a line of input the result
  keep SOCKET PORT / kept SOCKET PORT   checks grants, invites and revocations before and after a restart
"""

import json
import socket
import sys
import time

CLIENT = "0123456789abcdefghijklmnop"


def unix(path):
    caller = socket.socket(socket.AF_UNIX)
    # Longer than any answer takes, and shorter than the 30 s and 60 s after which the broker closes a connection.
    caller.settimeout(20)
    caller.connect(path)
    return caller


def tcp(port, host="127.0.0.1"):
    return socket.create_connection((host, int(port)), timeout=20)


def rest(caller):
    """Reads until the end. The client keeps its own output open."""
    data = b""
    try:
        while part := caller.recv(65536):
            data += part
    except ConnectionResetError:
        pass
    caller.close()
    return data


def head(method, target, body=b"", more=""):
    length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    return f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n{more}{length}\r\n".encode() + body


def ask(caller, method, target, document=None, token=None):
    """Returns the status and the JSON document."""
    more = "Connection: close\r\n" + (f"Authorization: Bearer {token}\r\n" if token else "")
    body = b"" if document is None else json.dumps(document).encode()
    caller.sendall(head(method, target, body, more))
    first, _, content = rest(caller).partition(b"\r\n\r\n")
    return int(first.split()[1]), json.loads(content) if content else None, content


def invite(path, scopes=("registry.read",), **more):
    spec = {"permissions": {"scopes": list(scopes), "selector": "all"}} | more
    status, issued, _ = ask(unix(path), "POST", "/v1/invites", spec)
    assert status == 201, issued
    return issued["token"]


def redeem(caller, token, client=CLIENT):
    return ask(caller, "POST", "/v1/invites/redeem", {"token": token, "client": client, "name": "test"})


def pair(path, port, scopes=("registry.read",), **more):
    status, issued, _ = redeem(tcp(port), invite(path, scopes, **more))
    assert status == 201, issued
    return issued["grant"]["id"], issued["token"]


def refusals(path, port):
    _, good = pair(path, port)
    revoked, gone = pair(path, port)
    assert ask(unix(path), "DELETE", f"/v1/grants/{revoked}")[0] == 200
    _, expired = pair(path, port, grantLifetimeSeconds=1)
    spent = invite(path)
    assert redeem(tcp(port), spent)[0] == 201
    late = invite(path, lifetimeSeconds=1)
    time.sleep(1.2)
    _, other = pair(path, port)
    # A valid ID and checksum with another secret cannot be made here; a mistyped token can.
    bodies = {
        "good": ask(tcp(port), "GET", "/v1/endpoints", token=good)[0],
        "revoked": ask(tcp(port), "GET", "/v1/endpoints", token=gone),
        "expired": ask(tcp(port), "GET", "/v1/endpoints", token=expired),
        "mistyped": ask(tcp(port), "GET", "/v1/endpoints", token=good[:-1] + ("a" if good[-1] != "a" else "b")),
        "an invite": ask(tcp(port), "GET", "/v1/endpoints", token=spent),
        "none": ask(tcp(port), "GET", "/v1/endpoints"),
        "spent": redeem(tcp(port, "::1"), spent, CLIENT + "x"),
        "late": redeem(tcp(port), late),
        "unix": ask(unix(path), "GET", "/v1/endpoints", token=gone),
    }
    print("good", bodies.pop("good"))
    # The right secret of an ended invite tells the reason.
    for name, reason in (("spent", "was used"), ("late", "expired")):
        status, answer, _ = bodies.pop(name)
        print(name, status, reason in answer["detail"])
    print(len({(answer[0], answer[2]) for answer in bodies.values()}), "kind of refusal:", {a[0] for a in bodies.values()})


def border(path, port):
    cases = [
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        (b"GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        (b"GET http://evil.test/health HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\n\r\n", 400),
        (b"GET /health HTTP/1.0\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: evil.test\r\n\r\n", 421),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\nHost: localhost\n\n", 400),
        (b"GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n", 400),
        (b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
        (b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400),
        (b"POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n{}", 400),
        *((f"{method} /health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: {coding}\r\n\r\n".encode()
           + b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 400)
          for method in ("GET", "POST") for coding in ("identity", "xchunked", "gzip, chunked", "chunked, identity")),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * (1 << 20) + b"\r\n\r\n", {400, 431, None}),
        (b"GET /" + b"a" * (1 << 20), {400, 431, None}),
        (b"GET /" + b"a" * 20000, 431),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n", 403),
        (b"OPTIONS /health HTTP/1.1\r\nHost: localhost\r\nAccess-Control-Request-Private-Network: true\r\n\r\n", 405),
        (b"POST /v1/invites/redeem HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415),
        (head("POST", "/v1/invites/redeem", b'{"token":"' + b"a" * 70000 + b'"}'), 413),
        (b"POST /v1/invites/redeem HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 70000\r\n"
         b"Expect: 100-continue\r\n\r\n", 413),
        (b"POST /v1/endpoints HTTP/1.1\r\nHost: evil.test\r\nContent-Type: application/json\r\nContent-Length: 9\r\n"
         b"Expect: 100-continue\r\n\r\n", 421),
        (head("POST", "/v1/invites/redeem", more="Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n")
         + b"ffffffffffffffffff\r\n{}\r\n0\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (head("POST", "/v1/invites/redeem", more="Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n")
         + b"2 \x00\r\n{}\r\n0\r\n\r\n", 400),
    ]
    wrong = 0
    for data, expected in cases:
        for connect in (lambda: unix(path), lambda: tcp(port)):
            caller = connect()
            try:
                caller.sendall(data)
                caller.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            answer = rest(caller)
            status = int(answer.split()[1]) if answer else None
            # Garbage behind a refused request may be refused, too; it is never answered.
            heads = 1 + sum(not part.startswith(b"400 ") for part in answer.split(b"HTTP/1.1 ")[2:])
            isRight = status in expected if isinstance(expected, set) else status == expected
            if not isRight or heads > 1 or b"access-control" in answer.lower():
                wrong += 1
                print("WRONG", data[:90], status, "instead of", expected, heads)
    print(len(cases) * 2, "cases,", wrong, "wrong")


def table(path, port, cases):
    """Sends each (method, target, host, fields, status by TCP, status by the unix socket), with and without a token."""
    token, count, wrong = pair(path, port)[1], 0, 0
    for method, target, host, fields, *expected in cases:
        for connect, status in zip((lambda: tcp(port), lambda: tcp(port, "::1"), lambda: unix(path)),
                                (expected[0], expected[0], expected[-1])):
            for shown in ("", f"Authorization: Bearer {token}\r\n"):
                body = b"{}" if method == "POST" else b""
                kind = "" if not body or "Content-Type" in fields else "Content-Type: application/json\r\n"
                length = f"Content-Length: {len(body)}\r\n" if body else ""
                caller = connect()
                caller.sendall(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{fields}{shown}{kind}"
                               f"{length}\r\n".encode() + body)
                # An event stream has no end: what it is answered with is enough.
                answer = caller.recv(65536) if status == 200 else rest(caller)
                caller.close()
                count += 1
                # A place that is not for strangers is refused them, whatever they are called.
                right = {status, 401} if status == 200 and not shown and target != "/health" else {status}
                if int(answer.split()[1]) not in right or b"access-control" in answer.lower():
                    wrong += 1
                    print("WRONG", method, target, host, fields, bool(shown), answer.split(b"\r\n")[0], status)
    alive = ask(tcp(port), "GET", "/v1/endpoints", token=token)[0]
    print(count, "cases,", wrong, "wrong, the token", alive)


def names(path, port):
    ours = ["localhost", "LOCALHOST", "127.0.0.1", "[::1]"]
    other = int(port) - 1
    cases = [("GET", target, name, "", 200) for name in ours for target in ("/health", "/v1/endpoints")]
    cases += [("GET", "/health", f"{name}:{port}", "", 200) for name in ours]
    # The unix socket has no port and accepts any.
    cases += [("GET", "/health", f"{name}:{other}", "", 421, 200) for name in ours]
    strange = ["evil.test", f"evil.test:{port}", "localhost.evil.test", "localhost6", "ip6-localhost", "patchbay.local",
               "localhost.", "127.0.0.2", "127.1", "0.0.0.0", "2130706433", "0x7f000001", "0177.0.0.1", "::1", "[::]",
               "[::ffff:127.0.0.1]", "[0:0:0:0:0:0:0:1]", "user@localhost", "localhost:", "localhost:0", f"localhost:0{port}",
               f"localhost:+{port}", "localhost:99999", f"localhost:{port}:{port}", "localhost/", "127.0.0.1.nip.io",
               "localhost, evil.test"]
    targets = [("GET", "/health"), ("GET", "/v1/endpoints"), ("POST", "/v1/invites/redeem")]
    cases += [(*target, name, "", 421) for name in strange for target in targets]
    # The absolute form contains a host too, which must equal the Host field.
    cases += [("GET", "http://localhost/health", "evil.test", "", 400), ("GET", "http://evil.test/health", "localhost", "", 400),
              ("GET", "http://evil.test/health", "evil.test", "", 421), ("GET", "http://localhost/health", "localhost", "", 200)]
    table(path, port, cases)


def pages(path, port):
    origins = ["https://evil.test", "null", "", "http://localhost.evil.test", f"http://localhost:{port}", "http://localhost",
               f"http://127.0.0.1:{int(port) - 1}", f"http://127.0.0.1:{port}", f"http://[::1]:{port}", "file://",
               "chrome-extension://abc", "https://evil.test, http://localhost"]
    upgrade = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    targets = [("GET", "/health"), ("GET", "/v1/endpoints"), ("GET", "/v1/events"), ("POST", "/v1/invites/redeem"),
               ("DELETE", "/v1/grants"), ("GET", "/nowhere")]
    cases = [(*target, "localhost", f"Origin: {origin}\r\n", 403) for origin in origins for target in targets]
    cases += [("GET", "/v1/events", "localhost", f"{upgrade}Origin: https://evil.test\r\n", 403)]
    cases += [(*target, "localhost", f"Sec-Fetch-Site: {site}\r\n", 403)
              for site in ("cross-site", "same-site", "same-origin") for target in targets]
    cases += [("GET", "/v1/endpoints", "localhost", "Sec-Fetch-Site: none\r\n", 200)]
    # As after DNS rebinding: the host name is checked before the origin.
    cases += [("POST", "/v1/invites/redeem", "evil.test", "Origin: http://evil.test\r\n", 421)]
    cases += [("OPTIONS", target, "localhost", "Origin: https://evil.test\r\nAccess-Control-Request-Method: POST\r\n"
               "Access-Control-Request-Private-Network: true\r\n", 405) for _, target in targets]
    cases += [("POST", "/v1/invites/redeem", "localhost", f"Content-Type: {kind}\r\n", 415)
              for kind in ("text/plain", "text/plain;application/json", "application/x-www-form-urlencoded",
                           "multipart/form-data; boundary=x")]
    table(path, port, cases)


def exposed(path, port):
    wrong, tokens = 0, []
    for connect in (lambda: unix(path), lambda: tcp(port)):
        for place in ("query", "path", "escaped", "cookie"):
            token = pair(path, port)[1]
            target, more = "/v1/endpoints", ""
            if place == "query":
                target += f"?token={token}"
            elif place == "path":
                target = f"/v1/grants/{token}"
            elif place == "escaped":
                target += "?t=" + "".join(f"%{ord(letter):02x}" for letter in token)
            else:
                more = f"Cookie: a=b; session={token}\r\n"
            caller = connect()
            caller.sendall(head("GET", target, more=more + "Connection: close\r\n"))
            shown = rest(caller)
            after = ask(tcp(port), "GET", "/v1/endpoints", token=token)[0]
            tokens.append(token)
            if not shown.startswith(b"HTTP/1.1 400") or after != 401 or token.encode() in shown:
                wrong += 1
                print("WRONG", place, shown[:60], after)
    print(*tokens)
    print(len(tokens), "cases,", wrong, "wrong")


def slashes(path, port):
    grant, token = pair(path, port)
    paths = ("/v1/grants/", "/v1/tunnels/", "/v1/invites/", "/v1/advertisements/", "/v1/grants//")
    print(*[ask(unix(path), "DELETE", target)[0] for target in paths])
    print(ask(tcp(port), "GET", "/v1/endpoints", token=token)[0])


def slow(port, count=200):
    start = time.monotonic()
    silent = tcp(port)
    crowd = [tcp(port) for _ in range(count)]
    for caller in crowd:
        caller.sendall(b"GET /health HTTP/1.1\r\nHo")
    assert ask(tcp(port), "GET", "/health")[0] == 200
    served = time.monotonic() - start
    ends, words = [], set()
    for caller in crowd:
        first, _, document = rest(caller).partition(b"\r\n\r\n")
        words.add((first.split()[1], json.loads(document)["code"]))
        ends.append(time.monotonic() - start)
    assert rest(silent) == b"", "who says nothing gets no answer"
    assert words == {(b"408", "timeout")}, words
    print("408 and closed" if 4.5 < min(ends) and max(ends) < 7 and served < 2 else f"WRONG {min(ends)} {max(ends)} {served}")


def streams(path, port, count):
    (grant, token), (_, other) = pair(path, port), pair(path, port)
    crowd = []
    for number in range(int(count)):
        caller = tcp(port) if number % 2 else unix(path)
        caller.sendall(head("GET", "/v1/events", more=f"Authorization: Bearer {token}\r\n"))
        crowd.append((caller, caller.recv(65536)))
    open = [caller for caller, answer in crowd if answer.startswith(b"HTTP/1.1 200 ")]
    refused = [(caller, answer) for caller, answer in crowd if not answer.startswith(b"HTTP/1.1 200 ")]
    # The server closes the refused connections.
    words = {(a.split()[1], json.loads((a + rest(c)).partition(b"\r\n\r\n")[2])["detail"].replace(grant, "G")) for c, a in refused}
    print(len(open), "open,", *[f"{status.decode()} {detail}" for status, detail in words])
    print("other", ask(tcp(port), "GET", "/v1/endpoints", token=other)[0], "none", ask(tcp(port), "GET", "/health")[0])
    open[0].close()
    end = time.monotonic() + 10
    while ask(tcp(port), "GET", "/v1/endpoints", token=token)[0] != 200:
        assert time.monotonic() < end, "the place stays taken"
    print("one more 200")


def silent(port, count):
    """Idle clients after a request that needs no grant."""
    crowd = []
    for _ in range(int(count)):
        caller = tcp(port)
        crowd.append(caller)
        caller.sendall(head("GET", "/health"))
        assert caller.recv(65536).startswith(b"HTTP/1.1 200 "), "refused"
    start = time.monotonic()
    status = ask(tcp(port), "GET", "/health")[0]
    print(status, "at once" if time.monotonic() - start < 1 else f"WRONG {time.monotonic() - start}")


def owners(path, port):
    """Event streams and idle connections of the owner's own programs."""
    _, token = pair(path, port)
    others = lambda: f"a command {ask(unix(path), 'GET', '/v1/status')[0]}, a grant {ask(tcp(port), 'GET', '/v1/endpoints', token=token)[0]}"
    def crowd(count, target):
        callers = []
        for _ in range(count):
            callers.append(unix(path))
            callers[-1].sendall(head("GET", target))
            yield callers[-1], callers[-1].recv(65536)
    streams = list(crowd(256, "/v1/events"))
    print(sum(answer.startswith(b"HTTP/1.1 200 ") for _, answer in streams), "streams:", others())
    for caller, _ in streams:
        caller.close()
    idle = list(crowd(300, "/health"))
    print(len(idle), "idle:", others())


def expiry(path, port):
    _, token = pair(path, port, grantLifetimeSeconds=2)
    due = time.monotonic() + 2
    events = tcp(port)
    events.sendall(head("GET", "/v1/events", more=f"Authorization: Bearer {token}\r\n"))
    rest(events)
    late = time.monotonic() - due
    print("in time" if -0.2 < late < 1 else f"WRONG {late}")


def keep(path, port):
    spent, open = invite(path), invite(path)
    _, issued, _ = redeem(tcp(port), spent)
    gone, revoked = pair(path, port)
    ask(unix(path), "DELETE", f"/v1/grants/{gone}")
    print(spent, open, issued["token"], revoked)


def kept(path, port):
    spent, open, token, revoked = sys.stdin.readline().split()
    print(ask(tcp(port), "GET", "/v1/endpoints", token=token)[0], ask(tcp(port), "GET", "/v1/endpoints", token=revoked)[0],
          redeem(tcp(port), spent, CLIENT + "x")[0], redeem(tcp(port), open)[0],
          ask(unix(path), "GET", "/v1/audit/verify")[1].get("firstInvalidEntry"))


def show(port):
    for token in sys.stdin:
        print(ask(tcp(port), "GET", "/v1/endpoints", token=token.strip())[0], flush=True)


def beg(path):
    asked = {"name": "agent", "permissions": {"scopes": ["registry.read"], "selector": "all"}}
    issued = ask(unix(path), "POST", "/v1/access-requests", asked)[1]
    print(issued["request"]["userCode"], flush=True)
    sys.stdin.readline()
    answer = ask(unix(path), "POST", "/v1/access-requests/poll", {"deviceCode": issued["deviceCode"], "client": CLIENT, "name": "agent"})[1]
    token = answer.get("granted", {}).get("token")
    print(answer["state"], ask(unix(path), "GET", "/v1/grants/self", token=token)[0] if token else "and nothing")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
