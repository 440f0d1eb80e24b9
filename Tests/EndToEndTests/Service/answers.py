"""Calls every operation of the broker's openapi.json and validates the responses against it.

usage: answers.py SOCKET UDID; prints one line per response, `ok` or `WRONG`, and exits with 1 if one was wrong.
"""

import http.server
import json
import sys
import threading

from openapi_spec_validator import validate

sys.dont_write_bytecode = True
from openapi_check import document, expect, used, wrong
from team_answers import ask_team

udid = sys.argv[2]
validate(document)
print("ok: a valid OpenAPI", document["openapi"], "document")


def tunnel(local, port=9876, **more):
    return {"local": local, "target": {"device": {"udid": udid, "port": port}}, "noRebind": True, "persistent": False} | more


static = {"name": "Lab", "kind": "mcp", "address": "127.0.0.1", "port": 9, "app": "com.example.lab"}
advertised = {"name": "Desk", "type": "_http._tcp", "port": 80, "txt": [{"key": "path", "value": "/"}, {"key": "on"}]}

# Successful operations on lists that are not empty.
lab = expect(201, "POST", "/v1/endpoints", static)["id"]
flutter = static | {"name": "Flutter", "kind": "dart-vm", "port": 10, "app": "com.example.flutter"}
flutter = expect(201, "POST", "/v1/endpoints", flutter)["id"]
assert expect(200, "GET", f"/v1/endpoints/{flutter}/vm-service")["http"] == "http://127.0.0.1:10/"
expect(204, "PUT", f"/v1/endpoints/{flutter}/secret", {"secret": "code=", "port": 10})
assert expect(200, "GET", f"/v1/endpoints/{flutter}/vm-service")["webSocket"] == "ws://127.0.0.1:10/code=/ws"
expect(400, "GET", f"/v1/endpoints/{lab}/vm-service")
expect(204, "DELETE", f"/v1/endpoints/{flutter}")
expect(400, "GET", f"/v1/endpoints/{lab}/pages")
for log in (f"/v1/endpoints/{lab}/log", f"/v1/endpoints/{lab}/log?lines=10001", f"/v1/endpoints/{lab}/log?follow=yes",
            f"/v1/devices/{udid}/log"):
    expect(400, "GET", log)
for log in ("/v1/endpoints/none/log", "/v1/devices/none/log"):
    expect(404, "GET", log)
expect(503, "GET", "/v1/devices/android-none/log")
first = expect(201, "POST", "/v1/tunnels", tunnel("tcp:127.0.0.1:0"))
expect(201, "POST", "/v1/tunnels", tunnel("tcp:127.0.0.1:0", target={"endpoint": lab}))
expect(201, "POST", "/v1/tunnels/all", [tunnel("tcp:127.0.0.1:0"), tunnel("tcp:127.0.0.1:0")])
desk = expect(201, "POST", "/v1/advertisements", advertised)["id"]
expect(200, "POST", f"/v1/endpoints/{lab}/probe")
for target in ("/v1/status", "/v1/endpoints", "/v1/endpoints?state=online&app=none", "/v1/endpoints?since=0&waitSeconds=0",
               f"/v1/endpoints/{lab}", "/v1/devices", "/v1/tunnels", f"/v1/tunnels/{first['id']}",
               "/v1/advertisements", "/health", "/openapi.json", "/v1/events", "/v1/events?topics=all", "/v1/problems",
               "/v1/agents"):
    expect(200, "GET", target)
expect(200, "PATCH", f"/v1/advertisements/{desk}", {"txt": [{"key": "path", "base64": "/w=="}]})
expect(200, "POST", "/v1/tunnels/ephemeral", [tunnel("tcp:127.0.0.1:0")])
expect(200, "POST", "/v1/advertisements/ephemeral", advertised | {"name": "Held"})

expect(400, "GET", "/v1/events?topics=status,weather")

# The dashboard: the page and the exchange of a code are on the TCP listener only.
expect(404, "GET", "/")
expect(404, "GET", "/dashboard/0123456789abcdef/app.js")
code = expect(201, "POST", "/v1/dashboard/codes")
assert code["url"].endswith("/#code=" + code["code"]), code["url"]
expect(403, "POST", "/v1/dashboard/sessions", {"code": code["code"]})
expect(204, "PUT", f"/v1/devices/{udid}/note", {"label": "drawer 3", "note": "cracked screen"})
expect(204, "PUT", f"/v1/devices/{udid}/note", {})
expect(400, "PUT", f"/v1/devices/{udid}/note", {"label": "x" * 61})
expect(404, "PUT", "/v1/devices/none/note", {"label": "x"})
reverse = "/v1/reverse-tunnels/android-ANSWERS/8081"
opened = expect(200, "PUT", reverse, {"localPort": 8082})
assert (opened["phonePort"], opened["localPort"], opened["state"]["name"]) == (8081, 8082, "waiting"), opened
assert expect(200, "GET", "/v1/reverse-tunnels")["reverseTunnels"] == [opened]
expect(204, "DELETE", reverse)
expect(404, "DELETE", reverse)
assert "iPhone" in expect(400, "PUT", f"/v1/reverse-tunnels/{udid}/8081", {"localPort": 8082})["detail"]
expect(404, "PUT", "/v1/reverse-tunnels/android-ANSWERS/0", {"localPort": 8082})
own = int(code["url"].split(":")[2].split("/")[0])
assert "the broker's own" in expect(403, "PUT", reverse, {"localPort": own})["detail"]
for body in (b"{", {}, {"localPort": 0}, {"localPort": 8082, "host": "192.0.2.7"}):
    expect(400, "PUT", reverse, body)

# MCP endpoints: the broker's own, and that of a small app with MCP 2025-06-18.
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class App(http.server.BaseHTTPRequestHandler):
    results = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "app", "version": "1"}},
        "tools/list": {"tools": [
            {"name": "tap", "inputSchema": {"type": "object"}}, {"name": "take_screenshot", "inputSchema": {"type": "object"}},
            {"name": "type_text", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}]},
        "tools/call": {"content": [{"type": "text", "text": "tapped"},
                                   {"type": "image", "mimeType": "image/png", "data": "aGFsbG8="}]},
    }

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        result = self.results.get(request["method"])
        if request.get("params", {}).get("name") == "take_screenshot":
            result = {"content": [{"type": "image", "mimeType": "image/png", "data": PICTURE}]}
        said = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
        body = json.dumps({"jsonrpc": "2.0", "id": request.get("id")} | said).encode() if "id" in request else b""
        self.send_response(200 if body else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


app = http.server.ThreadingHTTPServer(("127.0.0.1", 0), App)
threading.Thread(target=app.serve_forever, daemon=True).start()
sample = static | {"name": "Sample", "port": app.server_port, "app": "com.example.sample"}
shop = expect(201, "POST", "/v1/endpoints", sample)["id"]
upgrade = {"Connection": "Upgrade", "Upgrade": "patchbay-stream/1"}
expect(101, "GET", f"/v1/streams?endpoint={shop}", more=upgrade)
expect(101, "GET", f"/v1/streams?device={udid}&port={app.server_port}", more=upgrade)
assert expect(503, "GET", f"/v1/streams?endpoint={lab}", more=upgrade)["reason"] in ("refused", "noRoute")
assert expect(503, "GET", "/v1/streams?endpoint=none", more=upgrade)["reason"] == "noRoute"
for target in (f"/v1/streams?device={udid}", f"/v1/streams?device={udid}&port=0", f"/v1/streams?endpoint={lab}&port=1"):
    expect(400, "GET", target, more=upgrade)
expect(426, "GET", f"/v1/streams?endpoint={shop}")
ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
for target in ("/mcp", f"/e/{shop}/mcp"):
    assert expect(200, "POST", target, ask)["result"]["tools"]
    expect(202, "POST", target, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    expect(200, "GET", target, more={"Accept": "text/event-stream"})
    expect(204, "DELETE", target)
    expect(200, "GET", target + "/server-card")
    for bad in (b"{", b"[]", {"jsonrpc": "2.0", "id": 1}):
        expect(400, "POST", target, bad)
    expect(404, "POST", target, ask, more={"Mcp-Session-Id": "none"})
profile = """
name = "sample"
[rpc]
path = "/mcp"
[[recognition]]
method = "POST"
path = "/mcp"
body = '{"jsonrpc": "2.0", "id": 1, "method": "initialize"}'
json = { type = "object", required = ["result"] }
[identity.app]
path = "/mcp"
pointer = "/result/serverInfo/name"
[[tool]]
name = "tools"
description = "Lists the tools."
rpc = "tools/list"
read_only = true
"""
live = {"file": "sample.toml", "text": profile, "target": {"device": {"udid": udid, "port": app.server_port}}}
assert expect(200, "GET", "/v1/profiles")["profiles"]
assert expect(200, "POST", "/v1/profiles/check", {"file": "sample.toml", "text": profile})["steps"] == []
checked = expect(200, "POST", "/v1/profiles/check", live)
assert checked["server"] == {"app": "app"} and checked["tools"][0]["outcome"] == "answered", checked
checked = expect(200, "POST", "/v1/profiles/check", live | {"text": profile.replace('"result"', '"x"')})
assert "mismatch" in checked["steps"][0] and "server" not in checked, checked
bad = expect(400, "POST", "/v1/profiles/check", {"file": "sample.toml", "text": profile.replace("[rpc]", "[rcp]")})
assert "sample.toml:3:" in bad["detail"] and '"rpc"' in bad["detail"], bad
expect(503, "POST", "/v1/profiles/check", live | {"target": {"device": {"udid": udid, "port": 1}}})
for method in ("POST", "GET", "DELETE"):
    expect(404, method, "/all/mcp", ask if method == "POST" else None)
    expect(404, method, "/e/none/mcp", ask if method == "POST" else None)
catalog = expect(200, "GET", "/.well-known/ai-catalog.json")
names = [entry["identifier"].removeprefix("urn:air:patchbay.local:mcp:") for entry in catalog["entries"]]
assert names[0] == "broker" and shop in names and set(catalog["entries"][0]) == {"identifier", "type", "url"}, catalog
expect(304, "GET", "/mcp/server-card", more={"If-None-Match": "*"})
assert expect(200, "GET", f"/v1/endpoints/{shop}/tools")["tools"][1]["name"] == "tap"
assert expect(200, "POST", f"/v1/endpoints/{shop}/call", {"tool": "tap"})["result"]["content"][0]["text"] == "tapped"
linked = expect(200, "POST", f"/v1/endpoints/{shop}/call", {"tool": "tap", "maxPixels": 0})["result"]["content"][1]["uri"]
assert expect(200, "GET", "/v1/artifacts/" + linked.removeprefix("patchbay://artifact/")) == b"hallo"
expect(404, "GET", "/v1/artifacts/none")
for body in (b"{", {}, {"tool": "tap", "arguments": []}, {"tool": "tap", "waitSeconds": 61}):
    expect(400, "POST", f"/v1/endpoints/{shop}/call", body)
# The activity and the live screen.
activity = expect(200, "GET", "/v1/activity?endpoint=" + shop)
assert {entry["outcome"] for entry in activity["entries"] if entry["kind"] == "call"} == {"ok"}, activity
assert not expect(200, "GET", f"/v1/activity?since={activity['revision']}&outcome=failed")["entries"]
expect(200, "POST", f"/v1/endpoints/{shop}/call", {"tool": "take_screenshot", "arguments": {"token": "abc"}})
newest = expect(200, "GET", "/v1/activity?limit=1&waitSeconds=1")["entries"][0]
assert newest["picture"]["width"] == 1 and newest["arguments"] == {"token": "[removed]"}, newest
assert expect(200, "GET", f"/v1/activity/{newest['id']}/picture?width=400").startswith(b"\x89PNG")
expect(404, "GET", "/v1/activity/99999/picture")
assert expect(200, "GET", "/v1/usage")["hours"][-1]["calls"] > 0
screen = expect(200, "GET", f"/v1/endpoints/{shop}/screen")
assert screen["tool"] == "take_screenshot" and screen["input"] == ["type"] and len(screen["limits"]) == 3, screen
assert expect(200, "GET", f"/v1/endpoints/{shop}/screen/picture?width=400").startswith(b"\x89PNG")
expect(204, "POST", f"/v1/endpoints/{shop}/screen/input", {"type": {"text": "hallo"}})
expect(409, "POST", f"/v1/endpoints/{shop}/screen/input", {"tap": {"x": 0.5, "y": 0.5}})
for body in ({}, {"tap": {"x": 2, "y": 0}}, {"type": {"text": ""}}, {"tap": {"x": 0, "y": 0}, "type": {"text": "a"}}):
    expect(400, "POST", f"/v1/endpoints/{shop}/screen/input", body)
for target in ("/v1/activity?outcome=good", f"/v1/endpoints/{shop}/screen/picture?width=1"):
    expect(400, "GET", target)
expect(413, "POST", "/mcp", b"[" + b" " * (4 << 20) + b"]")
expect(415, "POST", "/mcp", b"{}", "text/plain")

# Leases.
lease = expect(201, "POST", "/v1/leases", {"endpoint": shop, "seconds": 60, "waitSeconds": 1, "note": "by hand"})
assert lease["own"] and lease["seconds"] == 60 and lease["note"] == "by hand", lease
assert expect(201, "POST", "/v1/leases", {"endpoint": shop})["id"] == lease["id"]
assert expect(201, "POST", "/v1/leases", {"endpoint": shop, "renew": lease["id"]})["id"] == lease["id"]
expect(404, "POST", "/v1/leases", {"endpoint": shop, "renew": "l99"})
assert expect(200, "GET", "/v1/leases")["leases"][0]["endpoint"] == shop
assert expect(200, "GET", f"/v1/endpoints/{shop}")["lease"]["id"] == lease["id"]
assert expect(200, "GET", "/v1/status")["leases"] == 1
for body in ({"endpoint": shop, "seconds": 0}, {"endpoint": shop, "waitSeconds": 3601}, {"seconds": 5}, b"{"):
    expect(400, "POST", "/v1/leases", body)
expect(404, "POST", "/v1/leases", {"endpoint": "none"})

# Registrations. A registration needs a grant, which an owner has not.
assert expect(200, "GET", "/v1/brokers")["brokers"] == []
registered = {"app": "com.example.registered", "port": app.server_port, "protocol": "mcp", "device": "Desk",
              "version": "1", "launchID": "one", "capabilities": ["tools"], "secret": "session"}
expect(403, "POST", "/v1/registrations", registered)
register = {"permissions": {"scopes": ["endpoint.register"], "selector": "all"}}
pairing = {"token": expect(201, "POST", "/v1/invites", register)["token"], "client": "k" * 30, "name": "phone"}
holder = {"Authorization": "Bearer " + expect(201, "POST", "/v1/invites/redeem", pairing)["token"]}
registration = expect(201, "POST", "/v1/registrations", registered, more=holder)
listed = expect(200, "GET", "/v1/endpoints/" + registration["endpoint"])
assert listed["sources"] == ["registration"] and listed["routes"][0]["registration"] == registration["id"], listed
assert listed["routes"][0]["secretHeld"] and listed["routes"][0]["address"] == "127.0.0.1", listed
expect(204, "PUT", "/v1/registrations/" + registration["id"], more=holder)
for body in (registered | {"protocol": "mpc"}, registered | {"port": 80}, {"app": "x"}, registered | {"secret": "a b"}):
    expect(400, "POST", "/v1/registrations", body, more=holder)
expect(204, "DELETE", "/v1/registrations/" + registration["id"], more=holder)
expect(404, "PUT", "/v1/registrations/" + registration["id"], more=holder)
expect(404, "DELETE", "/v1/registrations/none", more=holder)
expect(403, "GET", "/v1/brokers", more=holder)

# The remote listener.
assert expect(200, "GET", "/v1/remote")["state"] == "off"
expect(400, "PUT", "/v1/remote", {"enabled": True, "address": "example.com:7283"})
listening = expect(200, "PUT", "/v1/remote", {"enabled": True, "address": "127.0.0.2:7299"})
assert listening["state"] == "listening" and listening["pin"]
expect(409, "PUT", "/v1/remote", {"enabled": True, "address": "127.0.0.2:7298"})
for use, scope in (("remote", "registry.read"), ("bearer", "registry.read"), ("device", "endpoint.register")):
    distant = {"permissions": {"scopes": [scope], "selector": "all"}, "use": use}
    created = expect(201, "POST", "/v1/invites", distant)
    assert created["pairing"].startswith(f"PATCHBAY:1:127.0.0.2:7299:{listening['pin']}:"), created
    assert created["invite"]["use"] == use and created["addresses"] == ["127.0.0.2:7299"], created
    created = expect(201, "POST", "/v1/invites", dict(distant, host="lab.example.com"))
    assert created["pairing"].startswith("PATCHBAY:1:lab.example.com:7299:"), created
    expect(400, "POST", "/v1/invites", dict(distant, host="a b"))
    expect(403, "POST", "/v1/invites", dict(distant, permissions={"scopes": [scope, "admin"], "selector": "all"}))
assert expect(200, "PUT", "/v1/remote", {"enabled": False})["state"] == "off"
expect(409, "POST", "/v1/invites", distant)

ask_team(expect)

# Access control. The owner uses the unix socket; a grant is sent in a header.
permissions = {"scopes": ["registry.read", "invite.create", "secret.use"], "selector": "all"}
key = "0123456789abcdefghijklmnopqrst"
invite = expect(201, "POST", "/v1/invites", {"permissions": permissions, "maxUses": 2, "lifetimeSeconds": 60})
issued = expect(201, "POST", "/v1/invites/redeem", {"token": invite["token"], "client": key, "name": "answers"})
bearer = {"Authorization": "Bearer " + issued["token"]}
grant = issued["grant"]["id"]
for target in ("/v1/invites", "/v1/grants", f"/v1/grants/{grant}", "/v1/access-requests", "/v1/approvals", "/v1/denials",
               "/v1/audit?after=0&limit=5", "/v1/audit", "/v1/audit/verify", "/v1/configuration", "/metrics"):
    expect(200, "GET", target)
expect(200, "GET", "/v1/grants/self", more=bearer)
child = {"permissions": {"scopes": ["registry.read"], "selector": {"endpoints": [lab]}}}
expect(201, "POST", "/v1/invites", child, more=bearer)
wide = {"permissions": {"scopes": ["tunnel.open"], "selector": "all"}}
expect(403, "POST", "/v1/invites", wide, more=bearer)
for tools in ("read-only", {"named": ["tap"]}):
    limited = {"permissions": {"scopes": ["endpoint.call"], "selector": "all", "tools": tools}}
    assert expect(201, "POST", "/v1/invites", limited)["invite"]["permissions"]["tools"] == tools
    limited["permissions"]["scopes"] += ["tunnel.open"]
    expect(403, "POST", "/v1/invites", limited)
expect(200, "GET", "/v1/endpoints", more=bearer)
expect(403, "GET", "/v1/tunnels", more=bearer)
expect(403, "GET", f"/v1/streams?endpoint={shop}", more=bearer | upgrade)
sock = {"path": f"{sys.argv[1]}.agent/patchbay.sock", "name": "agent", "permissions": child["permissions"]}
assert expect(201, "POST", "/v1/grants", sock)["binding"] == {"socket": sock["path"]}
expect(409, "POST", "/v1/grants", sock)
expect(403, "POST", "/v1/grants", sock, more=bearer)
expect(400, "POST", "/v1/grants", dict(sock, path="agent.sock"))
caller = {"permissions": {"scopes": ["registry.read", "endpoint.call", "tunnel.open"], "selector": "all"}}
caller = expect(201, "POST", "/v1/invites", caller)
caller = expect(201, "POST", "/v1/invites/redeem", {"token": caller["token"], "client": key, "name": "caller"})
caller = {"Authorization": "Bearer " + caller["token"]}
assert not expect(200, "GET", "/v1/leases", more=caller)["leases"][0]["own"]
for target, body in (("/v1/leases", {"endpoint": shop}), (f"/v1/endpoints/{shop}/call", {"tool": "tap"}),
                     ("/v1/tunnels", tunnel("tcp:127.0.0.1:0", target={"endpoint": shop}))):
    refused = expect(423, "POST", target, body, more=caller)
    assert 'is leased to "user ' in refused["detail"] and "--wait 5m" in refused["hint"], refused
for more in (caller, caller | upgrade):
    expect(423, "GET", f"/v1/streams?endpoint={shop}", more=more)
expect(403, "DELETE", f"/v1/leases/{lease['id']}", more=caller)
expect(204, "DELETE", f"/v1/leases/{lease['id']}")
expect(404, "DELETE", f"/v1/leases/{lease['id']}")
expect(200, "POST", f"/v1/endpoints/{shop}/call", {"tool": "tap"}, more=caller)
expect(403, "GET", "/v1/audit", more=bearer)
expect(200, "GET", "/metrics", more=bearer)
expect(415, "PUT", f"/v1/endpoints/{lab}/approval")
expect(200, "PUT", f"/v1/endpoints/{lab}/approval", {})
expect(404, "PUT", f"/v1/endpoints/{lab}/approval", {"address": "192.0.2.7"})
expect(404, "PUT", f"/v1/endpoints/{lab}/denial", {})
expect(204, "PUT", f"/v1/endpoints/{lab}/secret", {"secret": "s3cret"})
expect(204, "POST", f"/v1/endpoints/{lab}/secret", {"secret": "s3cret"}, more=bearer)
expect(204, "POST", f"/v1/endpoints/{lab}/secret", {"secret": "s3cret", "invite": invite["token"], "client": key[::-1]})
assert expect(200, "DELETE", f"/v1/endpoints/{lab}/secret")["deletedCount"] == 1
assert expect(200, "DELETE", f"/v1/endpoints/{lab}/secret")["deletedCount"] == 0
expect(204, "DELETE", f"/v1/endpoints/{lab}/approval")
asked = {"name": "agent", "permissions": {"scopes": ["registry.read"], "selector": "all"}}
first_asked = expect(201, "POST", "/v1/access-requests", asked)
expect(204, "POST", "/v1/access-requests/unlock")
second_asked = expect(201, "POST", "/v1/access-requests", asked)
expect(429, "POST", "/v1/access-requests/poll", {"deviceCode": first_asked["deviceCode"], "client": key})
expect(200, "POST", f"/v1/access-requests/{first_asked['request']['userCode']}/approve")
expect(200, "POST", f"/v1/access-requests/{second_asked['request']['userCode']}/deny")
expect(200, "POST", "/v1/access-requests/poll", {"deviceCode": first_asked["deviceCode"], "client": key})
expect(200, "POST", "/v1/access-requests/poll", {"deviceCode": second_asked["deviceCode"], "client": key})
expect(401, "POST", "/v1/invites/redeem", {"token": invite["token"], "client": key * 2, "name": "late"})
expect(401, "GET", "/v1/endpoints", more={"Authorization": "Bearer nonsense"})
expect(421, "GET", "/v1/endpoints", more={"Host": "evil.test"})
expect(403, "GET", "/v1/endpoints", more={"Origin": "https://evil.test"})
expect(405, "OPTIONS", "/v1/endpoints")
expect(200, "POST", "/v1/clock/recover")
expect(200, "DELETE", f"/v1/invites/{expect(201, 'POST', '/v1/invites', {'permissions': permissions})['invite']['id']}")
expect(200, "DELETE", f"/v1/grants/{grant}")
expect(200, "DELETE", "/v1/grants")
expect(404, "GET", "/v1/grants/none0000")
expect(404, "POST", "/v1/access-requests/BBBB-BBBB/approve")

# Rejected requests.
for method, target in (("GET", "/nothing"), ("GET", "/v1/endpoints/none"), ("GET", "/v1/endpoints/NO%20ID"),
                       ("DELETE", "/v1/endpoints/none"), ("POST", "/v1/endpoints/none/probe"), ("GET", "/v1/tunnels/t99"),
                       ("DELETE", "/v1/tunnels/t99"), ("DELETE", "/v1/advertisements/a99")):
    expect(404, method, target)
expect(404, "PATCH", "/v1/advertisements/a99", {"txt": []})
for method, target in (("PUT", "/v1/endpoints"), ("DELETE", "/health"), ("POST", "/v1/status")):
    expect(405, method, target)
for target in ("/v1/endpoints?state=asleep", "/v1/endpoints?since=yesterday", "/v1/endpoints?since=1&waitSeconds=x",
               "/v1/tunnels?endpoint=lab", "/v1/endpoints?state=online&state=offline"):
    expect(400, "GET", target)
mistyped = expect(400, "GET", "/v1/leases?endpiont=lab")
assert mistyped["detail"] == 'there is no query parameter "endpiont"; did you mean "endpoint"?', mistyped
for target in ("/v1/endpoints", "/v1/tunnels", "/v1/tunnels/all", "/v1/tunnels/ephemeral", "/v1/advertisements", "/v1/advertisements/ephemeral"):
    expect(400, "POST", target, b"{")
    expect(400, "POST", target, b"{}")
    expect(415, "POST", target, b"{}", "text/plain")
expect(400, "POST", "/v1/endpoints", static | {"name": "Other", "port": 0})
expect(400, "POST", "/v1/endpoints", static | {"name": "Other", "address": "example.com"})
expect(400, "POST", "/v1/tunnels", tunnel("tcp:127.0.0.1:0", 0))
expect(400, "POST", "/v1/advertisements", advertised | {"name": ""})
expect(409, "POST", "/v1/endpoints", static)
expect(409, "POST", "/v1/tunnels", tunnel(first["listenAddresses"][0]))
expect(409, "POST", "/v1/tunnels/all", [tunnel("tcp:127.0.0.1:0"), tunnel(first["listenAddresses"][0])])
expect(409, "POST", "/v1/tunnels/ephemeral", [tunnel(first["listenAddresses"][0])])
expect(413, "POST", "/v1/endpoints", b"[" + b" " * (4 << 20) + b"]")

# Operations that delete objects.
expect(204, "DELETE", f"/v1/advertisements/{desk}")
expect(204, "DELETE", f"/v1/tunnels/{first['id']}")
expect(200, "DELETE", "/v1/tunnels")
for id in (lab, shop):
    expect(204, "DELETE", f"/v1/endpoints/{id}")

written = {(method.upper(), route) for route, operations in document["paths"].items() for method in operations}
for method, route in sorted(written - used):
    wrong.append(route)
    print("WRONG", method, route, "was not asked")
for method, route in sorted(written):
    print("route", method, route)
sys.exit(bool(wrong))
