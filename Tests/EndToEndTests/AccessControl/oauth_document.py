"""Uses the broker as a client of OAuth with a metadata document, which a server with a public address has.

usage: oauth_document.py PATCHBAY SOCKET URL CERTIFICATE KEY; runs in a network namespace of its own, and prints a line
`ok: …` for each step.
"""

import base64
import hashlib
import http.server
import json
import ssl
import sys
import threading
import time
import urllib.parse
import urllib.request

sys.dont_write_bytecode = True
from oauth_page import answered, base, post, url

REDIRECT = "http://127.0.0.1:4000/callback"
VERIFIER = "v" * 43


class Site(http.server.BaseHTTPRequestHandler):
    asked = []

    def do_GET(self):
        self.asked.append(self.path)
        document = {"client_id": f"https://{self.headers['Host']}{self.path}", "client_name": "A desktop client",
                    "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none"}
        if self.path == "/other":
            document["client_id"] = "https://app.example/client.json"
        if self.path == "/large":
            document["logo_uri"] = "x" * 20_000
        if self.path == "/slow":
            time.sleep(8)
        body = json.dumps(document).encode()
        self.send_response(302 if self.path == "/moved" else 200)
        if self.path == "/moved":
            self.send_header("Location", "https://app.example/client.json")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    def log_message(self, *words):
        pass


class Server(http.server.ThreadingHTTPServer):
    connections = 0

    def get_request(self):
        Server.connections += 1
        return super().get_request()

    def handle_error(self, *words):
        pass


def query(client):
    challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
    return urllib.parse.urlencode({
        "response_type": "code", "client_id": client, "redirect_uri": REDIRECT, "state": "s", "resource": url,
        "code_challenge": challenge, "code_challenge_method": "S256"})


def refused(client):
    """Returns what the page says, and checks that no owner was asked."""
    status, answer = post("/oauth/requests", {"query": query(client)})
    assert status == 401 and answer["error"] == "invalid_client", (client, status, answer)
    return answer["error_description"]


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[4], sys.argv[5])
    server = Server(("0.0.0.0", 443), Site)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    metadata = json.loads(urllib.request.urlopen(f"{base}/.well-known/oauth-authorization-server").read())
    assert metadata["client_id_metadata_document_supported"] is True, metadata
    client = "https://app.example/client.json"
    location = answered(f"{base}/oauth/authorize?{query(client)}", "approve")
    code = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(location).query))["code"]
    status, tokens = post("/oauth/token", {"grant_type": "authorization_code", "code": code, "client_id": client,
                                           "redirect_uri": REDIRECT, "code_verifier": VERIFIER, "resource": url}, form=True)
    assert status == 200 and tokens["access_token"], tokens
    assert location.startswith(REDIRECT) and Site.asked == ["/client.json"], Site.asked
    print("ok: a client with a document asks, without a registration")

    status, asked = post("/oauth/requests", {"query": query(client)})
    assert status == 201 and asked["request"]["authorization"]["host"] == "app.example", asked
    assert Site.asked == ["/client.json"]
    print("ok: the page gets the host of the document, which is fetched once")

    for path in ("moved", "other", "large"):
        print(f"ok: {path}:", refused(f"https://app.example/{path}"))
    assert Site.asked == ["/client.json", "/moved", "/other", "/large"], Site.asked
    start = time.monotonic()
    assert "in time" in refused("https://app.example/slow")
    assert time.monotonic() - start < 8
    print("ok: a slow server is given up")

    before = len(Site.asked)
    refused("https://wrong.example/client.json")
    assert len(Site.asked) == before
    print("ok: a server without a certificate for the name gets no request")

    connections = Server.connections
    for host in ("inside.example", "mixed.example", "unknown.example"):
        refused(f"https://{host}/client.json")
    for client in ("https://127.0.0.1/client.json", "https://localhost/client.json", "http://app.example/client.json"):
        refused(client)
    assert Server.connections == connections
    print("ok: a name that leads inside is not dialled")


main()
