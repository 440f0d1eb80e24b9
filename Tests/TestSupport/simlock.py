#!/usr/bin/env python3
"""A stand-in for the HTTP API of simlock (github.com/callstackincubator/simlock, commit 071c4ea), written from the source and its
document, without a run of the original. Bodies are those of JSON.stringify.

The token is slk_test. Prints "listening on PORT", and "request: " with the method, the path and the body of each request as a JSON text.
"""
import argparse
import http.server
import json
from urllib.parse import parse_qs, urlsplit

TOKEN = "slk_test"
LEASE = {"id": "lse_9f2c", "requestId": "req_1", "platform": "ios", "device": "iPhone 17 Pro", "os": "26.5",
         "udid": "7A1B2C3D-0000-4000-8000-123456789ABC", "deviceId": "dev_1a2b", "createdAt": "2026-09-01T09:14:07.000Z",
         "expiresAt": "2026-09-01T09:29:07.000Z", "ttlMs": 900000, "dataPlane": None, "mode": "full"}
leases, requests = {}, {}


class Failure(Exception):
    def __init__(self, status, code, message):
        self.status, self.body = status, {"error": {"code": code, "message": message}}


def route(method, path, query, body):
    """Returns the status and the body of the response; None for an empty one."""
    parts = path.strip("/").split("/")[1:]
    if (method, parts) == ("GET", ["status"]):
        return 200, {"daemon": {"health": "running", "mode": "worker"}, "leases": list(leases.values()), "queueDepth": 0}
    if (method, parts) == ("GET", ["catalog"]):
        platform = query.get("platform", ["ios"])[0]
        return 200, {"platforms": [{"platform": platform, "models": ["iPhone 17 Pro"], "runtimes": ["26.5"]}]}
    if (method, parts) == ("POST", ["lease-requests"]):
        if not body.get("device"):
            raise Failure(400, "BAD_REQUEST", "device: expected string, received undefined")
        requests["req_1"] = {"id": "req_1", "state": "queued", "queuePosition": 1, "createdAt": "2026-09-01T09:12:00.000Z"}
        return 201, {"request": requests["req_1"]}
    if parts[0] == "lease-requests" and len(parts) == 2:
        if parts[1] not in requests:
            raise Failure(404, "UNKNOWN_LEASE_REQUEST", "Unknown lease request: " + parts[1])
        if method == "DELETE":
            if requests[parts[1]]["state"] == "granted":
                raise Failure(409, "REQUEST_NOT_CANCELLABLE", "Request already granted lease lse_9f2c; release it instead")
            del requests[parts[1]]
            return 204, None
        leases[LEASE["id"]] = LEASE
        requests[parts[1]] = {"id": parts[1], "state": "granted", "createdAt": "2026-09-01T09:12:00.000Z", "lease": LEASE}
        return 200, {"request": requests[parts[1]]}
    if parts[0] == "leases":
        if parts[1] not in leases:
            raise Failure(404, "UNKNOWN_LEASE", "Unknown lease: " + parts[1])
        if method == "POST" and parts[2:] == ["renew"]:
            return 200, {"expiresAt": LEASE["expiresAt"], "leaseId": parts[1], "notices": []}
        if method == "DELETE":
            del leases[parts[1]]
            return 204, None
        return 200, {"lease": leases[parts[1]]}
    raise Failure(404, "NOT_FOUND", "no such route")


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        print("request:", json.dumps(" ".join([self.command, self.path, body]).strip()), flush=True)
        url = urlsplit(self.path)
        try:
            if url.path == "/v1/healthz":
                status, value = 200, {"ok": True}
            else:
                given = self.headers.get("Authorization")
                if given != "Bearer " + TOKEN:
                    raise Failure(401, "UNAUTHENTICATED", "Unknown bearer token" if given else "Missing bearer token")
                status, value = route(self.command, url.path, parse_qs(url.query), json.loads(body or "{}"))
        except Failure as failure:
            status, value = failure.status, failure.body
        text = b"" if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        self.send_response(status)
        if text:
            self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_DELETE = answer

    def log_message(self, *_):
        pass


parser = argparse.ArgumentParser()
parser.add_argument("--address", default="127.0.0.1")
parser.add_argument("--port", type=int, default=0)
options = parser.parse_args()
listener = http.server.ThreadingHTTPServer((options.address, options.port), Server)
print("listening on", listener.server_address[1], flush=True)
listener.serve_forever()
