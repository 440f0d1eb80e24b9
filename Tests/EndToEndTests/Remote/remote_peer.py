#!/usr/bin/env python3
"""An MCP client of PyPI's mcp at a remote listener: pins the key of the broker, sends a bearer token, and calls a tool.

  remote_peer.py HOST PORT PIN        the token is in PATCHBAY_GRANT
"""
import asyncio
import base64
import hashlib
import os
import ssl
import subprocess
import sys

import httpx
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


def pinned(host, port, pin):
    """Returns a TLS context that accepts only the certificate of the pinned key."""
    certificate = ssl.get_server_certificate((host, port))
    key = subprocess.run(["openssl", "x509", "-noout", "-pubkey"], input=certificate.encode(), capture_output=True, check=True).stdout
    spki = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=key, capture_output=True, check=True).stdout
    if base64.b32encode(hashlib.sha256(spki).digest()).decode().rstrip("=") != pin:
        sys.exit("another key")
    context = ssl.create_default_context(cadata=certificate)
    # The certificate is the only one that is trusted, without its issuer, whatever its names are.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = False
    return context


async def main(host, port, pin):
    context = pinned(host, int(port), pin)

    def client(headers=None, timeout=None, auth=None):
        return httpx.AsyncClient(headers=headers, timeout=timeout, auth=auth, verify=context)

    headers = {"Authorization": "Bearer " + os.environ["PATCHBAY_GRANT"]}
    url = f"https://{host}:{port}/mcp"
    async with streamablehttp_client(url, headers=headers, httpx_client_factory=client) as (reader, writer, _):
        async with ClientSession(reader, writer) as session:
            await session.initialize()
            print("tools", len((await session.list_tools()).tools))
            arguments = {"endpoint": "shop", "name": "tap_element", "arguments": {"element_id": "5"}}
            result = await session.call_tool("endpoint_call", arguments)
            print("call", "failed" if result.isError else "ok", result.content[0].text.replace("\n", " "))


asyncio.run(main(*sys.argv[1:]))
