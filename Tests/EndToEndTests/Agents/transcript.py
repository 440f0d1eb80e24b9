#!/usr/bin/env python3
"""Runs a real client through all features of a server and prints the responses as JSON, without `_meta`.

  transcript.py SETUP KIND URL|COMMAND... [-- KIND URL|COMMAND...]...

The same client must see the same responses directly and through Patchbay. The kinds `server`, `questions` and `guard` are for
server.py, `app` is for the sample app. Each line is [target, request, response].
"""
import asyncio
import json
import secrets
import sys

import peer


def plain(value):
    """Returns a response as JSON: a dumped pydantic model, or the text of an error."""
    if isinstance(value, Exception):
        # The libraries' wrapping text differs, the server's text does not.
        return {"error": str(getattr(value, "message", value) or type(value).__name__)}
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items() if key not in ("_meta", "meta")}
    return [plain(part) for part in value] if isinstance(value, (list, tuple)) else value


class Transcript:
    def __init__(self):
        self.entries = []
        self.heard = []

    async def note(self, name, awaitable, withWords=True):
        try:
            value = plain(await awaitable)
        except Exception as error:
            value = plain(error) if withWords else {"error": True}
        if isinstance(value, dict) and "tools" in value:
            # The order of a server's list is not defined.
            value["tools"].sort(key=lambda tool: tool["name"])
        self.entries.append([name, value])
        return value

    @staticmethod
    async def formless(awaitable):
        """Returns the response without the differences of PNG and JPEG."""
        value = plain(await awaitable)
        value["structuredContent"].pop("format")
        for block in value["content"]:
            if block["type"] == "image":
                block["data"] = block["mimeType"] = None
            else:
                block["text"] = {**json.loads(block["text"]), "format": None}
        return value

    @staticmethod
    async def refusal(awaitable):
        """Returns whether a call was refused, without the text of the refusal."""
        try:
            value = plain(await awaitable)
        except Exception:
            return {"refused": True}
        return {"refused": bool(value.get("isError") or value.get("is_error"))}

    async def app(self, client):
        await self.note("tools", client.list_tools())
        await self.note("call", client.call("launch_context", {}))
        await self.note("arguments", client.call("tap_element", {"element_id": "größe \u202e \U0001f600"}))
        await self.note("picture", client.call("screenshot", {"format": "png"}))
        # An intended difference: without a format Patchbay returns a JPEG.
        await self.note("picture in any format", self.formless(client.call("screenshot", {})))
        await self.note("failed", client.call("tap_element", {"element_id": "missing"}))
        # Patchbay checks arguments against the schema itself, in its own words.
        await self.note("refused", self.refusal(client.call("screenshot", {"format": "bmp"})))
        await self.note("unknown", client.call("no_such_tool", {}))

    async def server(self, client):
        await self.note("tools", client.list_tools())
        await self.note("call", client.call("add", {"a": 2, "b": 3}))
        await self.note("text", client.call("echo", {"text": "größe \u202e \U0001f600"}))
        await self.note("header", client.call("where", {"region": "Zürich", "level": 2}))
        await self.note("picture", client.call("picture", {}))
        await self.note("failed", client.call("fail", {}))
        await self.note("wrong", self.refusal(client.call("add", {"a": "x"})))
        await self.note("unknown", client.call("no_such_tool", {}))
        heard = []

        async def hear(progress, total=None, message=None):
            heard.append([progress, total, message])

        await self.note("progress", client.call("steps", {}, progress=hear))
        self.entries.append(["heard", heard])
        key = secrets.token_hex(8)
        slow = asyncio.create_task(client.call("slow", {"key": key}))
        await asyncio.sleep(0.4)
        slow.cancel()
        try:
            await slow
        except (asyncio.CancelledError, Exception):
            pass
        await asyncio.sleep(0.4)
        await self.note("was cancelled", client.call("was_cancelled", {"key": key}))
        await self.note("resources", client.list_resources())
        await self.note("read", client.read_resource("note://one"))
        await self.note("read of a template", client.read_resource("note://by/jane"))
        await self.note("read of nothing", client.read_resource("note://none"))
        await self.note("prompts", client.list_prompts())
        await self.note("prompt", client.get_prompt("greet", {"name": "Jane"}))
        await self.note("call again", client.call("add", {"a": 20, "b": 3}))

    async def guard(self, client):
        result = await client.call("guard", {})
        self.entries.append(["guard", [block.text for block in result.content]])
        self.entries.append(["heard", sorted(self.heard)])

    async def questions(self, client):
        await self.note("asked", client.call("ask", {}))
        await self.note("asked twice", client.call("ask_twice", {}))
        await self.note("sampled", client.call("sample", {}))
        await self.note("roots", client.call("roots", {}))
        await self.note("told", client.call("talk", {}))
        # The libraries report missing items in different ways.
        await self.note("level", client.set_log_level("error"), withWords=False)
        await self.note("told less", client.call("talk", {}))
        self.entries.append(["heard", list(self.heard)])
        self.heard.clear()
        calls = (client.call(name, {}) for name in ("ask", "sample", "roots"))
        await self.note("all at once", asyncio.gather(*calls, return_exceptions=True))
        self.entries.append(["heard at once", sorted(self.heard)])


async def main(setup, groups):
    for number, (kind, *target) in enumerate(groups):
        transcript = Transcript()
        heard = transcript.heard if kind in ("questions", "guard") else None
        where = target[0] if "://" in target[0] else target
        try:
            async with asyncio.timeout(60), peer.connect(setup, where, heard) as client:
                await getattr(transcript, kind)(client)
        except Exception as error:
            transcript.entries.append(["end", {"error": str(error) or type(error).__name__}])
        for entry in transcript.entries:
            print(json.dumps([number, *entry], ensure_ascii=False, sort_keys=True), flush=True)


def split(words):
    groups = [[]]
    for word in words:
        if word == "--":
            groups.append([])
        else:
            groups[-1].append(word)
    return groups


asyncio.run(main(sys.argv[1], split(sys.argv[2:])))
