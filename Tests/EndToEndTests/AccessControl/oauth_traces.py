"""Sends the requests of other clients of OAuth, as their sources have them, and the checks of the official conformance suite.

usage: oauth_traces.py PATCHBAY SOCKET URL; prints a line `ok: …` for each step, and fails at the first wrong one.
"""

import base64
import hashlib
import http.client
import json
import re
import secrets
import sys
import urllib.parse

sys.dont_write_bytecode = True
from oauth_page import answered, base, patchbay, url

# What the fetch of Node adds to each request.
NODE = {"Accept": "*/*", "Accept-Language": "*", "Sec-Fetch-Mode": "cors", "User-Agent": "node",
        "Accept-Encoding": "gzip, deflate"}
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
MCP = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
VERSION = {"MCP-Protocol-Version": "2025-11-25"}
path = urllib.parse.urlsplit(url).path


def send(method, target, headers, body=None):
    """Returns the status, the headers and the document of an answer."""
    parts = urllib.parse.urlsplit(urllib.parse.urljoin(base, target))
    connection = http.client.HTTPConnection(parts.netloc, timeout=20)
    connection.request(method, parts.path + (f"?{parts.query}" if parts.query else ""), body, NODE | headers)
    answer = connection.getresponse()
    kind = answer.headers.get("Content-Type", "")
    text = b"" if kind.startswith("text/event-stream") and method == "GET" else answer.read().decode()
    connection.close()
    if kind.startswith("text/event-stream"):
        found = re.findall(r"^data: ?(\{.*)$", text or "", re.M)
        return answer.status, answer.headers, json.loads(found[-1]) if found else None
    return answer.status, answer.headers, json.loads(text) if "json" in kind else None


def form(**fields):
    return urllib.parse.urlencode(fields)


def rpc(method, number=1, **params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


INITIALIZE = rpc("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "c", "version": "1"})


class Proof:
    def __init__(self):
        self.verifier = secrets.token_urlsafe(32)
        self.challenge = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).decode().rstrip("=")


def challenge(answer):
    """Reads WWW-Authenticate with the expression of mcp-remote."""
    text = re.sub(r"^Bearer\s+", "", answer["WWW-Authenticate"], flags=re.I)
    return {name: quoted or plain for name, quoted, plain in re.findall(r'(\w+)=(?:"([^"]*)"|([\w-]+))', text)}


def browse(address, *options):
    """Opens an address in the browser; returns the parameters of the answer, and where it went."""
    location = answered(address, "approve", *options)
    parts = urllib.parse.urlsplit(location)
    query = urllib.parse.parse_qs(parts.query)
    assert all(len(values) == 1 for values in query.values()), location
    return {name: values[0] for name, values in query.items()}, f"{parts.scheme}://{parts.netloc}{parts.path}"


def conformance():
    """`authorization-server-metadata-endpoint` and `authorization-code-grant` of modelcontextprotocol/conformance."""
    status, headers, metadata = send("GET", "/.well-known/oauth-authorization-server", {})
    assert status == 200 and "application/json" in headers["Content-Type"], status
    assert all(metadata[name] for name in ("authorization_endpoint", "token_endpoint"))
    assert "code" in metadata["response_types_supported"] and "S256" in metadata["code_challenge_methods_supported"]
    assert metadata["issuer"] == base and metadata["client_id_metadata_document_supported"] is False
    print("ok: conformance: authorization-server-metadata-endpoint")

    redirect = "http://127.0.0.1:3999/callback"
    status, _, client = send("POST", metadata["registration_endpoint"], MCP, json.dumps({"redirect_uris": [redirect]}))
    assert status == 201
    proof, state = Proof(), secrets.token_urlsafe(32)
    asked = form(response_type="code", client_id=client["client_id"], state=state, redirect_uri=redirect,
                 code_challenge=proof.challenge, code_challenge_method="S256")
    answer, place = browse(f"{metadata['authorization_endpoint']}?{asked}")
    assert place == redirect and answer["state"] == state and answer["code"] and "error" not in answer
    assert answer["iss"] == metadata["issuer"]
    status, headers, tokens = send("POST", metadata["token_endpoint"], {"Content-Type": FORM["Content-Type"]}, form(
        grant_type="authorization_code", code=answer["code"], redirect_uri=redirect, code_verifier=proof.verifier,
        client_id=client["client_id"]))
    assert status == 200 and "application/json" in headers["Content-Type"] and "no-store" in headers["Cache-Control"]
    assert isinstance(tokens["access_token"], str) and isinstance(tokens["token_type"], str)
    print("ok: conformance: authorization-code-grant")


def discover(discovery, metadata_headers):
    """Follows the challenge of a 401 to the metadata of the resource and of the authorization server."""
    status, headers, _ = discovery
    found = challenge(headers)
    assert status == 401, status
    status, _, resource = send("GET", found["resource_metadata"], metadata_headers)
    assert status == 200 and resource["resource"] == url and resource["authorization_servers"] == [base], resource
    issuer = urllib.parse.urlsplit(resource["authorization_servers"][0])
    well_known = f"{issuer.scheme}://{issuer.netloc}/.well-known/oauth-authorization-server"
    status, _, metadata = send("GET", well_known, metadata_headers | {"Accept": "application/json"})
    assert status == 200 and metadata["issuer"] == resource["authorization_servers"][0], metadata
    return found, resource, metadata


def use(token):
    """Begins a session, opens its stream, lists and calls as clients do; returns a function that calls a tool."""
    bearer = {"Authorization": f"Bearer {token}"}
    status, headers, _ = send("POST", url, MCP | bearer, INITIALIZE)
    assert status == 200, status
    session = bearer | VERSION | {"Mcp-Session-Id": headers["Mcp-Session-Id"]}
    status, _, _ = send("POST", url, MCP | session, json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    assert status == 202, status
    assert send("GET", url, session | {"Accept": "text/event-stream"})[0] == 200
    assert send("POST", url, MCP | session, rpc("tools/list", 2))[2]["result"]["tools"]
    return lambda name, /, **arguments: send("POST", url, MCP | session, rpc("tools/call", 3, name=name, arguments=arguments))


def mcp_remote():
    """mcp-remote 0.1.38 with the TypeScript SDK 1.25: a probe with GET, a registration with a scope, a refresh."""
    discovery = send("GET", url, {"Accept": "application/json, text/event-stream"})
    found, resource, metadata = discover(discovery, {"Accept": "application/json", "Accept-Encoding": "identity"})
    discover(send("POST", url, MCP, INITIALIZE), VERSION)
    redirect = "http://localhost:3334/oauth/callback"
    status, _, client = send("POST", metadata["registration_endpoint"], {"Content-Type": "application/json"}, json.dumps({
        "redirect_uris": [redirect], "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
        "client_name": "MCP CLI Proxy", "client_uri": "https://github.com/modelcontextprotocol/mcp-cli",
        "software_id": "2e6dc280-f3c3-4e01-99a7-8181dbd1d23d", "software_version": "0.1.38", "scope": found["scope"]}))
    assert status == 201 and client["redirect_uris"] == [redirect], client
    proof = Proof()
    asked = form(response_type="code", client_id=client["client_id"], code_challenge=proof.challenge,
                 code_challenge_method="S256", redirect_uri=redirect, state="3f2a", scope=found["scope"],
                 resource=resource["resource"])
    answer, place = browse(f"{metadata['authorization_endpoint']}?{asked}")
    assert place == redirect and answer["state"] == "3f2a"
    status, _, tokens = send("POST", metadata["token_endpoint"], FORM, form(
        grant_type="authorization_code", code=answer["code"], code_verifier=proof.verifier, redirect_uri=redirect,
        resource=url, client_id=client["client_id"]))
    assert status == 200 and tokens["expires_in"] > 0, tokens
    use(tokens["access_token"])
    status, _, renewed = send("POST", metadata["token_endpoint"], FORM, form(
        grant_type="refresh_token", refresh_token=tokens["refresh_token"], resource=url, client_id=client["client_id"]))
    assert status == 200 and renewed["refresh_token"] != tokens["refresh_token"], renewed
    use(renewed["access_token"])
    print("ok: mcp-remote")


def inspector():
    """The MCP inspector 2.3 with the TypeScript SDK 2: a native client, whose owner gives less, and its step-up."""
    found, resource, metadata = discover(send("POST", url, MCP, INITIALIZE), VERSION)
    redirect = "http://127.0.0.1:6276/oauth/callback"
    status, _, client = send("POST", metadata["registration_endpoint"], {"Content-Type": "application/json"}, json.dumps({
        "redirect_uris": [redirect], "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
        "client_name": "MCP Inspector", "client_uri": "https://github.com/modelcontextprotocol/inspector",
        "scope": found["scope"], "application_type": "native"}))
    assert status == 201, client

    def authorize(scope, *options):
        proof = Proof()
        asked = form(response_type="code", client_id=client["client_id"], code_challenge=proof.challenge,
                     code_challenge_method="S256", redirect_uri=redirect, state="a" * 64, scope=scope,
                     resource=resource["resource"])
        answer, _ = browse(f"{metadata['authorization_endpoint']}?{asked}", *options)
        status, _, tokens = send("POST", metadata["token_endpoint"], FORM, form(
            grant_type="authorization_code", code=answer["code"], code_verifier=proof.verifier, redirect_uri=redirect,
            resource=url, client_id=client["client_id"]))
        assert status == 200, tokens
        return tokens

    less = authorize(found["scope"], "--scope", "registry.read", "--app", "com.example.shop")
    assert less["scope"] == "registry.read", less
    grants = json.loads(patchbay("grants", "--json"))["grants"]
    assert {"bundles": ["com.example.shop"]} in [grant["permissions"]["selector"] for grant in grants], grants
    print("ok: an owner gives less than the inspector asks for")

    call = use(less["access_token"])
    assert call("endpoint_list")[0] == 200
    status, headers, problem = call("endpoint_call", endpoint="shop", name="x")
    step = challenge(headers)
    assert status == 403 and step["error"] == problem["error"] == "insufficient_scope", problem
    assert step["scope"] == "endpoint.call registry.read" and step["resource_metadata"] == found["resource_metadata"]
    wanted = " ".join(sorted(set(less["scope"].split()) | set(step["scope"].split())))
    more = authorize(wanted)
    assert more["scope"] == wanted and use(more["access_token"])("endpoint_call", endpoint="shop", name="x")[0] == 200
    print("ok: a call without its scope leads to the inspector's step-up")


conformance()
mcp_remote()
inspector()
