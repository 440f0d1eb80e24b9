#!/usr/bin/env python3
"""A server that offers one of everything, made with whichever library this Python has: mcp 1.30, mcp 2.3 or fastmcp.

Prints "listening on PORT" when it is about to listen; its path is /mcp. With --lines it takes a message a line over TCP, too, as
servers of `_mcp._tcp` do, each connection a session: "lines on PORT" comes before.
"""
import argparse
import asyncio
import base64
import contextlib
import importlib.metadata
import os
import socket
import threading
from typing import Annotated

import anyio
import uvicorn
from mcp.server.stdio import stdio_server
from pydantic import Field

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")


def installed(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


if installed("fastmcp"):
    from fastmcp import Context, FastMCP
    from fastmcp.utilities.types import Image
    server = FastMCP("everything", version="1.2.3")
elif installed("mcp").startswith("1."):
    from mcp.server.fastmcp import Context, FastMCP, Image
    from mcp.server.transport_security import TransportSecuritySettings
    # At a unix socket the host has no port, which it would not take.
    server = FastMCP("everything", transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False))
else:
    from mcp.server.mcpserver import Context, Image, MCPServer
    from mcp.server.transport_security import TransportSecuritySettings
    server = MCPServer("everything", version="1.2.3")
isModern = not installed("mcp").startswith("1.")
if isModern:
    import mcp_types as types
else:
    from mcp import types
FORM = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}
cancelled = set()


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def echo(text: str) -> str:
    return text


@server.tool()
def where(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})], level: int = 1) -> str:
    """Its region is in a header, too (2026-07-28)."""
    return f"{region} {level}"


@server.tool()
def picture():
    return Image(data=PICTURE, format="png")


@server.tool()
def fail() -> str:
    raise ValueError("it was to be expected")


@server.tool()
async def steps(ctx: Context) -> str:
    for step in range(3):
        await ctx.report_progress(step + 1, 3, f"step {step + 1}")
        # Else the last is overtaken by the result on a connection of its own.
        await asyncio.sleep(0.05)
    return "done"


@server.tool()
async def slow(key: str) -> str:
    try:
        await asyncio.sleep(10)
    except asyncio.CancelledError:
        cancelled.add(key)
        raise
    return "too late"


@server.tool()
def was_cancelled(key: str) -> bool:
    return key in cancelled


@server.tool()
async def ask(ctx: Context) -> str:
    """Wants to know something of whoever is at the client."""
    answer = await ctx.session.elicit("Who are you?", FORM, ctx.request_id)
    return f"{answer.action} {answer.content}"


@server.tool()
async def ask_twice(ctx: Context) -> str:
    await ctx.report_progress(1, 2)
    first = await ctx.session.elicit("Who is first?", FORM, ctx.request_id)
    second = await ctx.session.elicit("And who is second?", FORM, ctx.request_id)
    return f"{first.content} and {second.content}"


@server.tool()
async def sample(ctx: Context) -> str:
    """Lets the client's model say something."""
    question = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="What is the time?"))
    answer = await ctx.session.create_message([question], max_tokens=10, related_request_id=ctx.request_id)
    return f"{answer.role} {answer.model}: {answer.content.text}"


@server.tool()
async def roots(ctx: Context) -> str:
    """Looks at the client's folders. In these libraries that goes over the stream beside the request."""
    return " ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@server.tool()
async def talk(ctx: Context) -> str:
    for level in ("debug", "info", "error"):
        word = f"a word of {level}"
        await (ctx.log(word, level) if installed("fastmcp") else ctx.log(level, word))
        # Else the last is overtaken by the result.
        await asyncio.sleep(0.05)
    return "said"


async def guard(ctx: Context):
    """Asks by its result, as 2026-07-28 has it."""
    if not ctx.input_responses:
        question = types.ElicitRequest(params=types.ElicitRequestFormParams(message="Who are you?", requested_schema=FORM))
        more = types.ListRootsRequest()
        return types.InputRequiredResult(input_requests={"who": question, "where": more}, request_state="kept")
    who, where = ctx.input_responses["who"], ctx.input_responses["where"]
    return f"{ctx.request_state}: {who.action} {who.content}, " + " ".join(str(root.uri) for root in where.roots)


if isModern:
    server.tool()(guard)


@server.resource("note://one")
def note() -> str:
    return "a note"


@server.resource("note://by/{name}")
def note_by(name: str) -> str:
    return f"a note by {name}"


@server.prompt()
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Say hello to {name}."


class StatelessOnly:
    """The same, but for clients of the eras before."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and (b"mcp-protocol-version", b"2026-07-28") not in scope["headers"]:
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            await self.app(scope, receive, send)


parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--lines", action="store_true")
parser.add_argument("--socket", help="a unix socket to listen at as well")
parser.add_argument("--stateless", action="store_true", help="speak nothing but 2026-07-28")
options = parser.parse_args()
sockets = [socket.create_server(("127.0.0.1", options.port))]
if options.socket:
    # Of one that was killed.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(options.socket)
    local = socket.socket(socket.AF_UNIX)
    local.bind(options.socket)
    sockets.append(local)


async def serve_lines(connection):
    core = getattr(server, "_mcp_server", None) or server._lowlevel_server
    with connection, connection.makefile("r", encoding="utf-8") as reader, connection.makefile("w", encoding="utf-8") as writer:
        async with stdio_server(anyio.wrap_file(reader), anyio.wrap_file(writer)) as (messages, answers):
            await core.run(messages, answers, core.create_initialization_options())


def accept(listener):
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=anyio.run, args=(serve_lines, connection), daemon=True).start()


if options.lines:
    lines = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept, args=(lines,), daemon=True).start()
    print("lines on", lines.getsockname()[1], flush=True)
print("listening on", sockets[0].getsockname()[1], flush=True)
if installed("fastmcp"):
    app = server.http_app()
elif installed("mcp").startswith("1."):
    app = server.streamable_http_app()
else:
    app = server.streamable_http_app(transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False))
if options.stateless:
    app = StatelessOnly(app)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=sockets)
