"""Arguments as models and clients send them: null, empty, text for numbers and JSON as text."""

import json
import subprocess

from peer import Server, run

REF = {"$defs": {"T": {"type": "string"}}}
SCHEMA = REF | {"type": "object", "required": ["id"], "properties": {
    "id": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}, "ratio": {"type": "number"}, "on": {"type": "boolean"},
    "mode": {"type": "string", "enum": ["a", "b"]}, "level": {"enum": ["1", "2"]}, "tags": {"type": "array", "items": {"type": "string"}},
    "where": {"type": "object"}, "maybe": {"type": ["string", "null"]}, "old": {"type": "string", "nullable": True},
    "either": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "both": {"type": ["string", "integer"]}, "ref": {"$ref": "#/$defs/T"},
    "one": {"oneOf": [{"type": "integer"}, {"type": "null"}]}, "all": {"allOf": [{"type": "string"}]},
}}
TOOL = {"name": "tap", "inputSchema": SCHEMA}
NOTHING = object()


def delivered(arguments, expected, tool=TOOL):
    """Returns a case: the app gets the expected arguments."""
    def case(broker):
        server = Server(tools=[tool])
        client = broker.client(broker.add(server.port))
        client.tools()
        params = {"name": "tap"} | ({} if arguments is NOTHING else {"arguments": arguments})
        answer = client.request("tools/call", params)
        assert server.calls(), f"the call was refused: {json.dumps(answer)[:300]}"
        found = server.calls()[-1].get("arguments", {})
        assert found == expected and json.dumps(found) == json.dumps(expected), f"the app got {found}"
        assert not answer["result"].get("isError"), answer
    return case


def refused(arguments, word):
    """Returns a case: the call does not reach the app, and the reason names the argument."""
    def case(broker):
        server = Server(tools=[TOOL])
        client = broker.client(broker.add(server.port))
        client.tools()
        answer = client.request("tools/call", {"name": "tap", "arguments": arguments})
        assert not server.calls(), f"the app got {server.calls()[-1]}"
        assert word in json.dumps(answer), answer
    return case


def typed(words, expected):
    """Returns a case of `patchbay call`."""
    def case(broker):
        server = Server(tools=[TOOL])
        identifier = broker.add(server.port)
        broker.client(identifier).tools()
        done = subprocess.run([broker.program, "call", "--socket", broker.path, identifier, "tap", "id=1"] + words, capture_output=True, text=True, timeout=30)
        assert server.calls(), f"rc {done.returncode}: {done.stderr[:300]}"
        assert server.calls()[-1]["arguments"] == {"id": "1"} | expected, server.calls()[-1]
    return case


def own(broker):
    """The broker's own tools take null for what is left out."""
    client = broker.client()
    for name, arguments in [("endpoint_list", {"endpoint": None, "state": None, "cursor": None}), ("port_forward", {"action": "list", "endpoint": None})]:
        answer = client.request("tools/call", {"name": name, "arguments": arguments})
        assert not answer.get("result", {"isError": True}).get("isError"), f"{name}: {answer}"


EMPTY = {"name": "tap", "inputSchema": {"type": "object", "properties": {}}}
BASE = {"id": "1"}

CASES = [
    ("CodeWithCJ/SparkyFitness#1540", "null for an optional integer", delivered(BASE | {"limit": None}, BASE)),
    ("ZenRows/zenrows-mcp#23", "null for an optional enum", delivered(BASE | {"mode": None}, BASE)),
    ("NVIDIA/NeMo-Agent-Toolkit#1507", "null where the schema names null", delivered(BASE | {"maybe": None, "either": None, "old": None, "one": None}, BASE | {"maybe": None, "either": None, "old": None, "one": None})),
    ("Gitlawb/openclaude#1266", "null for the broker's own arguments", own),
    ("CodeWithCJ/SparkyFitness#1540", "null for a required argument is refused", refused({"id": None}, "id")),
    ("cursor/cursor#3614", "empty text for an optional boolean is refused with its name", refused(BASE | {"on": ""}, "on")),
    ("anthropics/claude-code#22394", "an array as JSON text", delivered(BASE | {"tags": '["x","y"]'}, BASE | {"tags": ["x", "y"]})),
    ("anthropics/claude-code#59227", "an object as JSON text", delivered(BASE | {"where": '{"a":1}'}, BASE | {"where": {"a": 1}})),
    ("GongRzhe/Gmail-MCP-Server#96", "a number as text", delivered(BASE | {"limit": "5", "ratio": "0.5"}, BASE | {"limit": 5, "ratio": 0.5})),
    ("GongRzhe/Gmail-MCP-Server#96", "a text as number", delivered({"id": 5}, {"id": "5"})),
    ("GongRzhe/Gmail-MCP-Server#96", "a text stays where both types are allowed", delivered(BASE | {"both": "5"}, BASE | {"both": "5"})),
    ("GongRzhe/Gmail-MCP-Server#96", "an inexact conversion is refused", refused(BASE | {"limit": "5.5"}, "limit")),
    ("anomalyco/opencode#9020", "no arguments at all", delivered(NOTHING, {}, EMPTY)),
    ("cline/cline#10553", "arguments are null", delivered(None, {}, EMPTY)),
    ("php-mcp/server#53", "arguments are an empty array", delivered([], {}, EMPTY)),
    ("modelcontextprotocol/inspector#431", "call: text stays text behind anyOf, allOf and $ref", typed(["either=0012", "all=0012", "ref=0012"], {"either": "0012", "all": "0012", "ref": "0012"})),
    ("modelcontextprotocol/inspector#647", "call: an enum without a type", typed(["level=1"], {"level": "1"})),
    ("modelcontextprotocol/inspector#647", "call: a number stays a number", typed(["limit=12"], {"limit": 12})),
]

if __name__ == "__main__":
    run(CASES)
