"""The broker of a host of a team that somebody has taken over. It answers every request with headers that would make a
browser or a client of another broker trust it, and with pages in place of documents.

  hostile_host.py ADDRESS PORT IDENTITY

IDENTITY is a file with the certificate of the host and its key. Each connection has one request. The answers are sent in
turn.
"""

import itertools
import socketserver
import ssl
import sys

# Every value contains this word, or is one that no broker sends.
HEADERS = """\
Access-Control-Allow-Origin: *
Access-Control-Allow-Credentials: true
Access-Control-Allow-Headers: hostile
Access-Control-Allow-Private-Network: true
Alt-Svc: h3="hostile.test:443"
Cache-Control: public, max-age=31536000, hostile
Clear-Site-Data: "*"
Content-Disposition: inline; filename=hostile
Content-Encoding: hostile
Content-Location: http://hostile.test/
Content-Security-Policy: default-src *
Link: <http://hostile.test/>; rel=preload
Location: http://hostile.test/
Patchbay-Secret: accepted
Refresh: 0; url=http://hostile.test/
Referrer-Policy: unsafe-url
Server: hostile
Service-Worker-Allowed: /
Set-Cookie: session=hostile
Strict-Transport-Security: max-age=31536000
Upgrade: hostile
WWW-Authenticate: Basic realm=hostile
X-Content-Type-Options: hostile
X-Patchbay-Grant: hostile
""".replace("\n", "\r\n")
PAGE = b"<!doctype html><script>hostile()</script>"
ANSWERS = [
    ("200 OK", "text/html; charset=utf-8", PAGE),
    ("200 OK", "application/json; charset=hostile", b'{"schema": 1, "tools": []}'),
    ("200 OK", "application/xhtml+xml", PAGE),
    ("200 OK", "text/event-stream; hostile", b"data: {}\n\n"),
    ("204 No Content", "", b""),
    ("302 Found", "text/html", PAGE),
    ("401 Unauthorized", "text/html", PAGE),
    ("404 Not Found", "image/svg+xml", PAGE),
    ("500 Internal Server Error", "application/problem+json", b'{"type": "hostile", "title": "x", "status": 500, "detail": "x"}'),
    ("103 Early Hints", "text/html", b""),
    ("999 Hostile", "text/html", PAGE),
]
answers = itertools.cycle(ANSWERS)


class Handler(socketserver.StreamRequestHandler):
    timeout = 10

    def handle(self):
        try:
            self.connection = context.wrap_socket(self.request, server_side=True)
        except OSError:
            return
        with self.connection as connection, connection.makefile("rb") as received:
            try:
                line = received.readline().decode()
                length = 0
                while (header := received.readline().decode().strip()):
                    name, _, value = header.partition(":")
                    length = int(value) if name.lower() == "content-length" else length
                received.read(length)
                status, kind, body = next(answers)
                head = f"HTTP/1.1 {status}\r\n{HEADERS}Connection: close\r\n"
                head += f"Content-Type: {kind}\r\n" if kind else ""
                head += "" if status[0] == "1" or status[:3] == "204" else f"Content-Length: {len(body)}\r\n"
                connection.sendall(f"{head}\r\n".encode() + body)
                print("answered", line.strip(), status, flush=True)
            except OSError:
                pass


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


address, port, identity = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(identity)
context.set_alpn_protocols(["http/1.1"])
server = Server((address, int(port)), Handler)
print("listening", flush=True)
server.serve_forever()
