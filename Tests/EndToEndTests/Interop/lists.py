"""Lists with damaged members: what remains is listed, and every client accepts it."""

import json

from peer import HELLO, Server, run

OBJECT = {"type": "object", "properties": {}}


def strict(tool):
    """Checks a tool as the TypeScript SDK does, and the rules of model APIs about names."""
    assert isinstance(tool["name"], str) and 0 < len(tool["name"]) <= 128 and tool["name"].isprintable(), tool["name"]
    for name in ("title", "description"):
        assert isinstance(tool.get(name, ""), str), f"{name} is {tool[name]!r}"
    for name in ("annotations", "_meta"):
        assert isinstance(tool.get(name, {}), dict), f"{name} is {tool[name]!r}"
    assert isinstance(tool.get("icons", []), list), f"icons is {tool['icons']!r}"
    for name in ("inputSchema", "outputSchema"):
        schema = tool.get(name, OBJECT)
        assert schema.get("type") == "object", f"{name} has the type {schema.get('type')!r}"
        properties = schema.get("properties", {})
        assert isinstance(properties, dict) and all(isinstance(one, dict) for one in properties.values()), f"{name} has the properties {properties!r}"
        required = schema.get("required", [])
        assert isinstance(required, list) and all(isinstance(one, str) for one in required), f"{name} requires {required!r}"
    assert "properties" in tool["inputSchema"], "inputSchema has no properties, which smolagents and OpenAI's API want"


def listed(tools, count=None, result=None):
    """Returns a case: each listed tool is strict, `hello` stays, and there are `count` tools."""
    def case(broker):
        server = Server(tools=[HELLO] + tools, results=result or {})
        client = broker.client(broker.add(server.port))
        answer = client.request("tools/list")
        assert "result" in answer, f"tools/list: {answer['error']['message'][:300]}"
        found = answer["result"]["tools"]
        for tool in found:
            strict(tool)
        names = [tool["name"] for tool in found]
        assert "hello" in names and len(names) == len(set(names)), f"listed are {names}"
        assert count is None or len(found) == count, f"listed are {names}"
        assert isinstance(answer["result"].get("nextCursor", ""), str), "nextCursor is no text"
    return case


def tool(name="odd", **members):
    return {"name": name, "inputSchema": OBJECT} | members


def paged(cursor):
    """Each page has a next cursor that ends the list or repeats."""
    def case(broker):
        asked = []

        def page(params):
            asked.append(params.get("cursor"))
            return {"tools": [HELLO], "nextCursor": cursor}
        client = broker.client(broker.add(Server(results={"tools/list": page}).port))
        assert list(client.tools()) == ["hello"]
        assert len(asked) < 6, f"the app was asked {len(asked)} times"
    return case


def other(method, member, entries, count):
    """A list of another kind keeps its valid entries and ends."""
    def case(broker):
        pages = []

        def page(params):
            pages.append(params.get("cursor"))
            return {member: entries, "nextCursor": ""}
        server = Server(capabilities={"tools": {}, "prompts": {}, "resources": {}}, results={method: page})
        answer = broker.client(broker.add(server.port)).request(method)
        assert "result" in answer, f"{method}: {answer['error']['message'][:300]}"
        found = answer["result"][member]
        assert len(found) == count, f"{len(found)} entries: {json.dumps(found)[:300]}"
        assert len(pages) < 6, f"the app was asked {len(pages)} times"
        for entry in found:
            assert all(isinstance(entry.get(name, ""), str) for name in ("name", "title", "description", "mimeType", "uri")), entry
            assert isinstance(entry.get("arguments", []), list), entry
    return case


def refused(method, member):
    """A client gets an empty list, although the app does not have the method."""
    def case(broker):
        client = broker.client(broker.add(Server(capabilities={"tools": {}, "resources": {}}).port))
        answer = client.request(method)
        assert answer.get("result", {}).get(member) == [], answer
    return case


def renamed(name):
    """A name that clients refuse gets a safe one, and a call by it reaches the original."""
    def case(broker):
        server = Server(tools=[HELLO, tool(name)])
        client = broker.client(broker.add(server.port))
        aliases = [one for one in client.tools() if one != "hello"]
        assert len(aliases) == 1, f"listed are {aliases}"
        strict(tool(aliases[0]))
        client.call(aliases[0], {})
        assert server.calls()[-1]["name"] == name, server.calls()
    return case


def kept(name):
    """A name that MCP allows stays as it is."""
    def case(broker):
        server = Server(tools=[tool(name)])
        client = broker.client(broker.add(server.port))
        assert list(client.tools()) == [name]
        client.call(name, {})
        assert server.calls()[-1]["name"] == name
    return case


LONG = "synchronize_all_customer_data_across_multiple_systems_and_regions_of_the_shop"
PROMPTS = [{"name": "a"}, {"name": "b", "title": None, "description": None, "arguments": None}, 7, {"description": "no name"}]
RESOURCES = [{"uri": "x://a", "name": "a"}, {"uri": "x://b", "name": "b", "mimeType": None, "title": None}, None, {"name": "no uri"}]

CASES = [
    ("use-novamira/novamira#82", "properties and required are arrays", listed([tool(inputSchema={"type": "object", "properties": [], "required": []})], 2)),
    ("modelcontextprotocol/php-sdk#411", "a property is an array", listed([tool(inputSchema={"type": "object", "properties": {"o": []}})], 2)),
    ("opgginc/laravel-mcp-server#74", "properties are null", listed([tool(inputSchema={"type": "object", "properties": None})], 2)),
    ("modelcontextprotocol/php-sdk#405", "required is null or text", listed([tool(inputSchema=OBJECT | {"required": None}), tool("p", inputSchema=OBJECT | {"required": "x"})], 3)),
    ("grll/mcpadapt#78", "inputSchema has no properties", listed([tool(inputSchema={"type": "object"})], 2)),
    ("NousResearch/hermes-agent#101804", "a property is true", listed([tool(inputSchema={"type": "object", "properties": {"value": True}})], 2)),
    ("mastra-ai/mastra#21859", "inputSchema is missing or null", listed([{"name": "odd"}, tool("p", inputSchema=None)], 3)),
    ("modelcontextprotocol/java-sdk#664", "members are null", listed([tool(title=None, description=None, annotations=None, icons=None, _meta=None, outputSchema=None)], 2)),
    ("modelcontextprotocol/php-sdk#411", "annotations are an array", listed([tool(annotations=[], _meta=[])], 2)),
    ("NousResearch/hermes-agent#101804", "outputSchema has no type", listed([tool(outputSchema={"properties": {"n": {"type": "number"}}})], 2)),
    ("NousResearch/hermes-agent#101804", "outputSchema is of an array", listed([tool(outputSchema={"type": "array", "items": {}})], 2)),
    ("cloudwego/eino#632", "two tools have one name", listed([tool("twice"), tool("twice")], 2)),
    ("mastra-ai/mastra#21859", "entries are no tools", listed([None, 3, "x", [], {}, {"name": ""}, {"name": 7}])),
    ("modelcontextprotocol/java-sdk#575", "nextCursor is empty", paged("")),
    ("modelcontextprotocol/csharp-sdk#1072", "nextCursor repeats", paged("again")),
    ("gensecaihq/Wazuh-MCP-Server#75", "nextCursor is null", paged(None)),
    ("modelcontextprotocol/java-sdk#575", "prompts: damaged entries, empty cursor", other("prompts/list", "prompts", PROMPTS, 2)),
    ("modelcontextprotocol/java-sdk#575", "resources: damaged entries, empty cursor", other("resources/list", "resources", RESOURCES, 2)),
    ("modelcontextprotocol/java-sdk#575", "templates: damaged entries, empty cursor", other("resources/templates/list", "resourceTemplates", [{"uriTemplate": "x://{a}", "name": "a"}, {"name": "none"}], 1)),
    ("upstash/context7#2527", "prompts/list without the capability", refused("prompts/list", "prompts")),
    ("metabase/metabase#77107", "resources/templates/list that the app does not have", refused("resources/templates/list", "resourceTemplates")),
    ("DeusData/codebase-memory-mcp#1015", "resources/list that the app does not have", refused("resources/list", "resources")),
    ("webstudio-is/webstudio#5960", "a name with dots", kept("meta.get-more_tools")),
    ("microsoft/vscode#243602", "a name of 77 characters", kept(LONG)),
    ("github/copilot-cli#1879", "a name of 200 characters", renamed("n" * 200)),
    ("github/copilot-cli#1879", "a name with a line break", renamed("two\nlines")),
]

if __name__ == "__main__":
    run(CASES)
