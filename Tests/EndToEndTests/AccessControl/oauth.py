"""Uses the broker as a client of OAuth, with the provider of PyPI's `mcp`.

usage: oauth.py PATCHBAY SOCKET URL; prints a line `ok: …` for each step, and fails at the first wrong one.
"""

import asyncio
import json
import sys
import urllib.error
import urllib.parse
import urllib.request

try:
    import httpx2 as httpx
except ImportError:
    import httpx
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared import auth
from mcp.shared.auth import OAuthClientMetadata

sys.dont_write_bytecode = True
from oauth_page import answered, base, patchbay, post, url


class Browser:
    """The browser of the person who uses the client."""

    def __init__(self, command):
        self.command = command
        self.answer = None

    async def open(self, address):
        location = await asyncio.to_thread(answered, address, self.command)
        self.answer = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(location).query))
        assert self.answer["iss"] == base, self.answer

    async def wait(self):
        code, state, iss = (self.answer.get(name) for name in ("code", "state", "iss"))
        if hasattr(auth, "AuthorizationCodeResult"):
            return auth.AuthorizationCodeResult(code=code or "", state=state, iss=iss)
        return code, state


class Storage:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


def provider(storage, browser):
    metadata = OAuthClientMetadata(
        client_name="Anna's inspector", redirect_uris=["http://127.0.0.1:4000/callback"],
        grant_types=["authorization_code", "refresh_token"], response_types=["code"])
    return OAuthClientProvider(url, metadata, storage, browser.open, browser.wait)


async def tools(auth):
    async with httpx.AsyncClient(auth=auth, timeout=30) as client:
        async with streamable_http_client(url, http_client=client) as streams:
            async with ClientSession(streams[0], streams[1]) as session:
                await session.initialize()
                return [tool.name for tool in (await session.list_tools()).tools]


def failure(error):
    """Returns the texts of an error, and of the errors of its group."""
    return str(error) + "".join(failure(each) for each in getattr(error, "exceptions", ()))


async def main():
    storage, browser = Storage(), Browser("approve")
    assert "endpoint_call" in await tools(provider(storage, browser))
    print("ok: a client that knows only the URL registers, asks and lists the tools")

    first = storage.tokens
    assert first.expires_in == 3600 and first.refresh_token and first.scope == "endpoint.call registry.read secret.use"
    [grant] = json.loads(patchbay("grants", "--json"))["grants"]
    assert grant["resource"] == url and grant["name"] == "Anna's inspector", grant
    print("ok: the token is a grant")

    def ask(path, token):
        request = urllib.request.Request(base + path, headers={"Authorization": f"Bearer {token}"})
        try:
            return urllib.request.urlopen(request, timeout=10).status
        except urllib.error.HTTPError as error:
            return error.code
    paths = ["/v1/endpoints", "/v1/grants/self", "/all/mcp", "/e/shop/mcp", "/mcp/server-card"]
    assert [ask(path, first.access_token) for path in paths] == [401] * len(paths)
    print("ok: the token is for its MCP server alone")

    # After a restart the client has its tokens, and not the metadata. It takes its token for an old one, and renews it.
    late = provider(storage, Browser("deny"))
    await late._initialize()
    late.context.token_expiry_time = 1
    assert "endpoint_call" in await tools(late)
    assert storage.tokens.access_token != first.access_token and storage.tokens.refresh_token != first.refresh_token
    print("ok: a token is renewed without a person")

    form = {"grant_type": "refresh_token", "refresh_token": first.refresh_token, "client_id": storage.client.client_id}
    status, answer = post("/oauth/token", form, form=True)
    assert (status, answer["error"]) == (400, "invalid_grant") and "ask for access again" in answer["error_description"]
    [grant] = json.loads(patchbay("grants", "--all", "--json"))["grants"]
    assert grant["endReason"] == "revoked", grant
    print("ok: the reuse of an old refresh token ends the grant")

    assert "endpoint_call" in await tools(provider(storage, Browser("approve")))
    print("ok: a client whose grant has ended asks again")

    try:
        await tools(provider(Storage(), Browser("deny")))
        raise SystemExit("a denied client has tools")
    except Exception as error:
        print("ok: a denied client stops:", failure(error)[:200].replace("\n", " "))

    request = urllib.request.Request(url, b"{}", {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        challenge, answer = error.headers["WWW-Authenticate"], json.loads(error.read())
    path = urllib.parse.urlsplit(url).path
    assert challenge == (f'Bearer resource_metadata="{base}/.well-known/oauth-protected-resource{path}", '
                         'scope="endpoint.call registry.read secret.use"'), challenge
    assert answer["error"] == "invalid_token" and answer["error_description"], answer
    print("ok: a 401 names the metadata")


asyncio.run(main())
