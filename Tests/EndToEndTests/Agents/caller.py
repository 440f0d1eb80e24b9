#!/usr/bin/env python3
"""A client that stays connected: reads lines {"tool": …, "arguments": …}, makes the calls, and prints one line per result.

  caller.py SETUP URL|COMMAND...
"""
import asyncio
import json
import sys

import peer


async def main(setup, target):
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with peer.connect(setup, target[0] if "://" in target[0] else target, []) as client:
        print(json.dumps({"connected": True}), flush=True)
        while line := await reader.readline():
            order = json.loads(line)
            try:
                result = await client.call(order["tool"], order["arguments"])
                text = " ".join(getattr(block, "text", "") for block in result.content)
                failed = getattr(result, "isError", None) or getattr(result, "is_error", None)
                types = [block.type for block in result.content]
                print(json.dumps({"ok": not failed, "text": text, "types": types}), flush=True)
            except Exception as error:
                print(json.dumps({"ok": False, "error": "%s: %s" % (type(error).__name__, error)}), flush=True)


asyncio.run(main(sys.argv[1], sys.argv[2:]))
