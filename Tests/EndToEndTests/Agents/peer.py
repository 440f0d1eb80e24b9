"""Five MCP client setups with one interface, for the library that this Python has.

  SETUP         library                        revision
  mcp1          mcp 1.30, ClientSession        2025-11-25, handshake
  mcp2-legacy   mcp 2.3, mode legacy           2025-11-25, handshake
  mcp2-modern   mcp 2.3, mode 2026-07-28       stateless only
  fastmcp2      fastmcp 2.14                   2025-11-25, handshake
  fastmcp4      fastmcp 4.1                    negotiated with the server

A target is a URL, or the words of a command that serves MCP over standard input and output. PATCHBAY_GRANT of the environment is
sent as a bearer token to a URL.

With the list `heard` the client supports every server request, answers as PEER_NAME, and appends each request and notification to
the list.
"""
import contextlib
import importlib.metadata
import datetime
import os

NAME = os.environ.get("PEER_NAME", "größe")


@contextlib.asynccontextmanager
async def connect(setup, target, heard=None):
    """Yields an object with list_tools, call, list_resources, read_resource, list_prompts, get_prompt and set_log_level."""
    async with SETUPS[setup](target, heard) as peer:
        yield peer


def callbacks(heard):
    """Callbacks of mcp's clients for server requests and notifications."""
    if heard is None:
        return {}
    if importlib.metadata.version("mcp").startswith("1."):
        from mcp import types
    else:
        import mcp_types as types

    async def elicit(context, params):
        heard.append(["elicit", params.message])
        return types.ElicitResult(action="accept", content={"name": NAME, "age": 7})

    async def sample(context, params):
        heard.append(["sample", params.messages[0].content.text])
        return types.CreateMessageResult(role="assistant", model="m", content=types.TextContent(type="text", text="late"))

    async def roots(context):
        heard.append(["roots"])
        return types.ListRootsResult(roots=[types.Root(uri="file:///one"), types.Root(uri="file:///two")])

    async def log(params):
        heard.append(["log", params.level, params.logger, params.data])

    return {"elicitation_callback": elicit, "sampling_callback": sample, "list_roots_callback": roots, "logging_callback": log}


def handlers(heard):
    """The same callbacks for fastmcp's clients."""
    if heard is None:
        return {}

    async def elicit(message, response_type, params, context):
        heard.append(["elicit", message])
        return {"name": NAME, "age": 7}

    async def sample(messages, params, context):
        heard.append(["sample", messages[0].content.text])
        return "late"

    async def roots(context):
        heard.append(["roots"])
        return ["file:///one", "file:///two"]

    async def log(message):
        heard.append(["log", message.level, message.logger, message.data])

    return {"elicitation_handler": elicit, "sampling_handler": sample, "roots": roots, "log_handler": log}


def headers():
    grant = os.environ.get("PATCHBAY_GRANT")
    return {"Authorization": "Bearer " + grant} if grant else {}


class Session:
    """mcp's ClientSession, and the Client of 2.x, which has the same names."""

    def __init__(self, session):
        self.session = session

    async def list_tools(self):
        return await self.session.list_tools()

    async def call(self, name, arguments, progress=None, seconds=None):
        limit = datetime.timedelta(seconds=seconds) if seconds and not hasattr(self.session, "mode") else seconds
        return await self.session.call_tool(name, arguments, progress_callback=progress, read_timeout_seconds=limit)

    async def list_resources(self):
        return await self.session.list_resources()

    async def read_resource(self, uri):
        return await self.session.read_resource(uri)

    async def list_prompts(self):
        return await self.session.list_prompts()

    async def get_prompt(self, name, arguments):
        return await self.session.get_prompt(name, arguments)

    async def set_log_level(self, level):
        return await self.session.set_logging_level(level)


class Fast:
    """fastmcp's Client; its *_mcp calls return unmodified responses."""

    def __init__(self, client):
        self.client = client

    async def list_tools(self):
        return await self.client.list_tools_mcp()

    async def call(self, name, arguments, progress=None, seconds=None):
        return await self.client.call_tool_mcp(name, arguments, progress_handler=progress, timeout=seconds)

    async def list_resources(self):
        return await self.client.list_resources_mcp()

    async def read_resource(self, uri):
        return await self.client.read_resource_mcp(uri)

    async def list_prompts(self):
        return await self.client.list_prompts_mcp()

    async def get_prompt(self, name, arguments):
        return await self.client.get_prompt_mcp(name, arguments)

    async def set_log_level(self, level):
        return await self.client.set_logging_level(level)


@contextlib.asynccontextmanager
async def mcp1(target, heard):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamablehttp_client

    if isinstance(target, str):
        transport = streamablehttp_client(target, headers=headers())
    else:
        transport = stdio_client(StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ)))
    async with transport as (reader, writer, *_), ClientSession(reader, writer, **callbacks(heard)) as session:
        await session.initialize()
        yield Session(session)


def mcp2(mode):
    @contextlib.asynccontextmanager
    async def open_client(target, heard):
        from mcp import Client, StdioServerParameters
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        # Before 2026-07-28 a server sends log messages without a request.
        level = {} if heard is None else {"log_level": "debug"}
        async with contextlib.AsyncExitStack() as stack:
            if isinstance(target, str):
                http = await stack.enter_async_context(create_mcp_http_client(headers=headers()))
                server = streamable_http_client(target, http_client=http)
            else:
                server = StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ))
            # Disables the cache, because these tests repeat requests.
            yield Session(await stack.enter_async_context(Client(server, mode=mode, cache=None, **(callbacks(heard) | level))))
    return open_client


@contextlib.asynccontextmanager
async def fast(target, heard):
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    if isinstance(target, str):
        transport = StreamableHttpTransport(target, headers=headers())
    else:
        transport = StdioTransport(command=target[0], args=target[1:], env=dict(os.environ))
    async with Client(transport, **handlers(heard)) as client:
        yield Fast(client)


SETUPS = {"mcp1": mcp1, "mcp2-legacy": mcp2("legacy"), "mcp2-modern": mcp2("2026-07-28"), "fastmcp2": fast, "fastmcp4": fast}
