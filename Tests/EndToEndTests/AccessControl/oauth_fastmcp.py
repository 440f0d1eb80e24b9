"""Uses the broker as a client of OAuth, with the provider of PyPI's `fastmcp`, which listens for the answer itself.

usage: oauth_fastmcp.py PATCHBAY SOCKET URL; prints a line `ok: …` for each step, and fails at the first wrong one.
"""

import asyncio
import sys
import threading
import time
import urllib.error
import urllib.request
import webbrowser

from fastmcp import Client
from fastmcp.client.auth import OAuth

sys.dont_write_bytecode = True
from oauth_page import answered, url


def browse(address, command):
    location = answered(address, command)
    for _ in range(100):
        try:
            return urllib.request.urlopen(location, timeout=10).read()
        except urllib.error.HTTPError as error:
            return error.read()
        except urllib.error.URLError:
            time.sleep(0.1)


async def tools(command):
    webbrowser.open = lambda address: threading.Thread(target=browse, args=(address, command), daemon=True).start()
    async with Client(url, auth=OAuth(callback_timeout=20)) as client:
        return [tool.name for tool in await client.list_tools()]


async def main():
    assert "endpoint_call" in await tools("approve")
    print("ok: a client that knows only the URL registers, asks and lists the tools")
    try:
        await tools("deny")
    except Exception as error:
        print("ok: a denied client stops:", str(error)[:200].replace("\n", " "))


asyncio.run(main())
