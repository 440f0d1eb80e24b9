#!/usr/bin/env python3
"""An agent framework's own MCP client that stays connected: reads lines {"tool": …, "arguments": …} and prints one line per result.

  framework.py smolagents|autogen-ext|pydantic-ai URL
"""
import asyncio
import contextlib
import json
import os
import sys

HEADERS = {"Authorization": "Bearer " + os.environ["PATCHBAY_GRANT"]}


@contextlib.asynccontextmanager
async def smolagents(url):
    from smolagents import MCPClient

    parameters = {"url": url, "transport": "streamable-http", "headers": HEADERS}
    client = await asyncio.to_thread(MCPClient, parameters, structured_output=False)
    tools = {tool.name: tool for tool in client.get_tools()}
    # smolagents returns the text of a failed call as its result.
    yield lambda name, arguments: asyncio.to_thread(lambda: tools[name](**arguments))


@contextlib.asynccontextmanager
async def autogen(url):
    from autogen_ext.tools.mcp import McpWorkbench, StreamableHttpServerParams

    async def call(name, arguments):
        result = await bench.call_tool(name, arguments)
        if result.is_error:
            raise RuntimeError(result.to_text())
        return result.to_text()

    async with McpWorkbench(StreamableHttpServerParams(url=url, headers=HEADERS)) as bench:
        await bench.list_tools()
        yield call


@contextlib.asynccontextmanager
async def pydantic_ai(url):
    from pydantic_ai.mcp import MCPToolset

    async with MCPToolset(url, headers=HEADERS) as toolset:
        await toolset.list_tools()
        yield toolset.direct_call_tool


FRAMEWORKS = {"smolagents": smolagents, "autogen-ext": autogen, "pydantic-ai": pydantic_ai}


async def main(framework, url):
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with FRAMEWORKS[framework](url) as call:
        print(json.dumps({"connected": True}), flush=True)
        while line := await reader.readline():
            order = json.loads(line)
            try:
                answer = {"ok": True, "text": str(await call(order["tool"], order["arguments"]))}
            except Exception as error:
                answer = {"ok": False, "text": "%s: %s" % (type(error).__name__, error)}
            print(json.dumps(answer), flush=True)
    # The thread of smolagents would wait for ever.
    os._exit(0)


asyncio.run(main(sys.argv[1], sys.argv[2]))
