"""Results with damaged members: what remains arrives, and every client accepts it."""

import base64
import json
import struct
import textwrap
import zlib

from peer import Server, run


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width=90, height=80):
    """A picture of one colour."""
    rows = b"".join(b"\0" + bytes([40, 120, 200]) * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PICTURE = next(text for width in range(80, 140) for text in [base64.b64encode(png(width)).decode()] if text.endswith("=") and ("+" in text or "/" in text))


def strict(result):
    """Checks a result as the TypeScript SDK does."""
    assert isinstance(result.get("content"), list), f"content is {result.get('content')!r}"
    assert isinstance(result.get("isError", False), bool), f"isError is {result['isError']!r}"
    assert isinstance(result.get("structuredContent", {}), dict), f"structuredContent is {result['structuredContent']!r}"
    assert isinstance(result.get("_meta", {}), dict), f"_meta is {result['_meta']!r}"
    needed = {
        "text": {"text": str}, "image": {"data": str, "mimeType": str}, "audio": {"data": str, "mimeType": str},
        "resource": {"resource": dict}, "resource_link": {"uri": str, "name": str},
    }
    for block in result["content"]:
        assert isinstance(block, dict) and block.get("type") in needed, f"a block is {str(block)[:200]}"
        for name, kind in needed[block["type"]].items():
            assert isinstance(block.get(name), kind), f"{name} of {block['type']} is {block.get(name)!r}"
        assert isinstance(block.get("annotations", {}), dict), f"annotations are {block['annotations']!r}"


def arrives(result, *words, missing=()):
    """Returns a case: a result (JSON, or bytes for what JSON does not allow) arrives with these words."""
    def case(broker):
        server = Server(results={"tools/call": result})
        answer = broker.client(broker.add(server.port)).call(arguments={})
        strict(answer)
        text = json.dumps(answer, ensure_ascii=False)
        assert not answer.get("isError"), text[:300]
        for word in words:
            assert word in text, f"{word!r} is not in {text[:400]}"
        for word in missing:
            assert word not in text, f"{word!r} is in {text[:400]}"
        assert len(server.calls()) == 1, "the call was repeated"
    return case


def deep(broker):
    """A view tree of 300 levels arrives whole."""
    tree = {"leaf": "bottom"}
    for level in range(300):
        tree = {"id": level, "children": [tree]} if level % 2 else {"child": tree}
    server = Server(results={"tools/call": {"content": [{"type": "text", "text": "tree"}], "structuredContent": tree}})
    assert "bottom" in json.dumps(broker.client(broker.add(server.port)).call(arguments={}))


def bottomless(broker):
    """A tree of 5,000 levels costs only its member."""
    tree = b'{"a":' * 5000 + b"1" + b"}" * 5000
    body = b'{"content":[{"type":"text","text":"kept"}],"structuredContent":' + tree + b"}"
    answer = broker.client(broker.add(Server(results={"tools/call": body}).port)).call(arguments={})
    strict(answer)
    assert "kept" in json.dumps(answer)


def pictured(data, kind="image/png"):
    """A picture arrives as a picture in plain base64 with its true type."""
    def case(broker):
        block = {"type": "image", "data": data} | ({"mimeType": kind} if kind else {})
        answer = broker.client(broker.add(Server(results={"tools/call": {"content": [block]}}).port)).call(arguments={})
        strict(answer)
        pictures = [one for one in answer["content"] if one["type"] == "image"]
        assert pictures, f"no picture: {str(answer)[:300]}"
        assert base64.b64decode(pictures[0]["data"], validate=True).startswith(b"\x89PNG"), pictures[0]["data"][:60]
        assert pictures[0]["mimeType"] == "image/png", pictures[0]["mimeType"]
    return case


def linked(data, kind):
    """A picture that cannot be resized arrives as a link with its type."""
    def case(broker):
        block = {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": kind}
        answer = broker.client(broker.add(Server(results={"tools/call": {"content": [block]}}).port)).call(arguments={})
        strict(answer)
        links = [one for one in answer["content"] if one["type"] == "resource_link"]
        assert links and links[0]["mimeType"] == kind, str(answer)[:300]
    return case


TEXT = [{"type": "text", "text": "kept"}]
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>'

CASES = [
    ("modelcontextprotocol/python-sdk#1796", "content is missing beside structuredContent", arrives({"structuredContent": {"ship": "kept"}}, "kept")),
    ("cloudflare/mcp-server-cloudflare#12", "content is null", arrives({"content": None, "structuredContent": {"a": "kept"}}, "kept")),
    ("cloudflare/mcp-server-cloudflare#12", "the result is the value itself", arrives({"title": "kept", "count": 3}, "kept")),
    ("modelcontextprotocol/swift-sdk#220", "content is a text", arrives({"content": "kept"}, "kept")),
    ("modelcontextprotocol/swift-sdk#220", "content is one block", arrives({"content": TEXT[0]}, "kept")),
    ("modelcontextprotocol/swift-sdk#220", "a text is a number, another is null", arrives({"content": TEXT + [{"type": "text", "text": 42}, {"type": "text", "text": None}]}, "kept", "42")),
    ("modelcontextprotocol/swift-sdk#220", "a block is a text", arrives({"content": ["kept"]}, "kept")),
    ("modelcontextprotocol/swift-sdk#220", "isError and _meta are null", arrives({"content": TEXT, "isError": None, "_meta": None, "structuredContent": None}, "kept")),
    ("NovasPlace/CSM#28", "structuredContent is an array", arrives({"content": TEXT, "structuredContent": [{"a": 1}]}, "kept")),
    ("modelcontextprotocol/csharp-sdk#955", "a block has unknown members", arrives({"content": [TEXT[0] | {"structuredContent": [{"a": [1]}]}]}, "kept")),
    ("modelcontextprotocol/csharp-sdk#955", "annotations are null or an array", arrives({"content": [TEXT[0] | {"annotations": None}, {"type": "text", "text": "two", "annotations": []}]}, "kept", "two")),
    ("kirodotdev/Kiro#8960", "a block is of an unknown type", arrives({"content": TEXT + [{"type": "chart", "points": [1]}]}, "kept")),
    ("openai/codex#33404", "a block is a resource_link", arrives({"content": TEXT + [{"type": "resource_link", "uri": "x://a", "name": "a"}]}, "kept", "x://a")),
    ("openai/codex#33404", "a resource_link has no name", arrives({"content": TEXT + [{"type": "resource_link", "uri": "x://b"}]}, "kept")),
    ("agentmail-to/agentmail-toolkit#13", "structuredContent without an outputSchema", arrives({"content": TEXT, "structuredContent": {"a": 1}}, "kept")),
    ("mk23/jmxproxy#1", "a number is NaN", arrives(b'{"content":[{"type":"text","text":"kept"}],"structuredContent":{"v":NaN,"w":7}}', "kept", '"w": 7')),
    ("loklak/loklak_server#256", "numbers are Infinity and -Infinity", arrives(b'{"content":[{"type":"text","text":"kept"}],"structuredContent":{"v":Infinity,"w":-Infinity}}', "kept")),
    ("kgabis/parson#7", "a name occurs twice", arrives(b'{"content":[{"type":"text","text":"lost"}],"content":[{"type":"text","text":"kept"}]}', "kept", missing=["lost"])),
    ("FellouAI/eko#287", "a text ends in half of a character", arrives(b'{"content":[{"type":"text","text":"kept \xff\xc3"}]}', "kept", "\ufffd")),
    ("microsoft/playwright-mcp#1410", "half of a surrogate pair", arrives(b'{"content":[{"type":"text","text":"kept \\ud83d"}]}', "kept")),
    ("open-simulation-platform/cosim-demo-app#20", "a number is too large for a double", arrives(b'{"content":[{"type":"text","text":"kept"}],"structuredContent":{"v":1e999,"w":123456789012345678901234567890}}', "kept")),
    ("mobile-dev-inc/Maestro#3504", "a tree of 300 levels", deep),
    ("microsoft/appcenter#2487", "a tree of 5,000 levels costs itself only", bottomless),
    ("nota/gyazo-mcp-server#129", "a picture is a data URI", pictured("data:image/png;base64," + PICTURE)),
    ("RepairShopr/react-native-signature-capture#195", "a picture has line breaks", pictured("\n".join(textwrap.wrap(PICTURE, 76)) + "\n")),
    ("SnappFr/react-native-image-base64#19", "a picture has no padding", pictured(PICTURE.rstrip("="))),
    ("SnappFr/react-native-image-base64#19", "a picture has URL-safe letters", pictured(PICTURE.replace("+", "-").replace("/", "_"))),
    ("microsoft/playwright-mcp#1219", "a PNG is declared as JPEG", pictured(PICTURE, "image/jpeg")),
    ("microsoft/playwright-mcp#1219", "a picture has no type", pictured(PICTURE, None)),
    ("ChromeDevTools/chrome-devtools-mcp#583", "an SVG", linked(SVG, "image/svg+xml")),
]

if __name__ == "__main__":
    run(CASES)
