"""The server scenarios of MCP's official conformance suite, written anew from their descriptions.

Usage: scenarios.py URL TOKEN VERSION app|broker   Runs the scenarios of a version against a URL: those for every server, and
with `app` also those that need the tools of app.py. Prints `ok NAME` or `failed NAME: REASON` for each scenario.
"""

import base64
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor

from mcp_client import EVERYTHING, STATELESS, Client

SESSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
ALL = SESSIONS + [STATELESS]
scenarios = []
URL, TOKEN, VERSION, TARGET = sys.argv[1:]


def scenario(versions=ALL, needs_app=True):
    def add(body):
        if VERSION in versions and (TARGET == "app" or not needs_app):
            scenarios.append(body)
        return body

    return add


def since(version):
    return [other for other in ALL if other >= version]


def sessions_since(version):
    return [other for other in SESSIONS if other >= version]


def client(capabilities=EVERYTHING):
    made = Client(URL, TOKEN, VERSION, capabilities)
    if not made.is_stateless:
        made.initialize()
    return made


def equal(found, wanted):
    assert found == wanted, f"found {found!r}, wanted {wanted!r}"


def refused(response, status, code):
    equal((response.status, response.code), (status, code))
    assert response.final["id"] is not None


# Lifecycle and utilities


@scenario(SESSIONS, needs_app=False)
def server_initialize():
    response = Client(URL, TOKEN, VERSION).initialize()
    equal(response.result["protocolVersion"], VERSION)
    assert response.result["serverInfo"]["name"] and response.result["serverInfo"]["version"]
    assert "tools" in response.result["capabilities"]
    session = response.headers["Mcp-Session-Id"]
    assert session and all(0x21 <= ord(letter) <= 0x7E for letter in session), session


@scenario(SESSIONS, needs_app=False)
def server_session_lifecycle():
    made = client()
    equal(made.exchange("DELETE").status, 204)
    equal(made.request("tools/list").status, 404)
    equal(made.exchange("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"}).status, 404)
    assert client().request("tools/list").result["tools"]


@scenario(SESSIONS, needs_app=False)
def ping():
    equal(client().request("ping").result, {})


@scenario(SESSIONS)
def logging_set_level():
    equal(client().request("logging/setLevel", {"level": "info"}).result, {})


@scenario(since("2025-03-26"))
def completion_complete():
    params = {
        "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"}, "argument": {"name": "arg1", "value": "t"},
    }
    assert isinstance(client().request("completion/complete", params).result["completion"]["values"], list)


@scenario(needs_app=False)
def dns_rebinding_protection():
    made = Client(URL, TOKEN, VERSION)
    own = made.url.netloc

    def status(host, origin):
        headers = {"Host": host, "Origin": origin}
        if made.is_stateless:
            return made.request("server/discover", headers=headers).status
        params = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        return made.request("initialize", params, headers).status

    assert status("evil.example.com", "http://evil.example.com") in range(400, 500)
    equal(status(own, f"http://{own}"), 200)
    equal(status(own, "http://evil.example.com"), 403)
    # The origin of the broker itself needs a grant as every other request.
    made.token = None
    equal(status(own, f"http://{own}"), 401)


# Tools


@scenario(needs_app=False)
def tools_list():
    tools = client().request("tools/list").result["tools"]
    assert tools
    for tool in tools:
        assert 1 <= len(tool["name"]) <= 64 and all(c.isalnum() or c in "_./-" for c in tool["name"]), tool["name"]
        assert isinstance(tool.get("description", ""), str) and tool["inputSchema"]["type"] == "object"


def content(tool):
    return client().call(tool).result["content"]


@scenario()
def tools_call_simple_text():
    equal(content("test_simple_text"), [{"type": "text", "text": "This is a simple text response for testing."}])


@scenario()
def tools_call_image():
    image = content("test_image_content")[0]
    assert image["type"] == "image" and image["mimeType"] == "image/png" and base64.b64decode(image["data"])


@scenario(since("2025-03-26"))
def tools_call_audio():
    audio = content("test_audio_content")[0]
    assert audio["type"] == "audio" and audio["mimeType"] == "audio/wav" and base64.b64decode(audio["data"])


@scenario()
def tools_call_embedded_resource():
    resource = content("test_embedded_resource")[0]["resource"]
    equal((resource["uri"], resource["mimeType"]), ("test://embedded-resource", "text/plain"))


@scenario()
def tools_call_mixed_content():
    equal([block["type"] for block in content("test_multiple_content_types")], ["text", "image", "resource"])


@scenario()
def tools_call_error():
    result = client().call("test_error_handling").result
    assert result["isError"] is True and "intentionally" in result["content"][0]["text"]


@scenario(SESSIONS)
def tools_call_with_logging():
    made = client()
    made.request("logging/setLevel", {"level": "debug"})
    messages = made.call("test_tool_with_logging").notifications("notifications/message")
    equal([message["data"] for message in messages],
          ["Tool execution started", "Tool processing data", "Tool execution completed"])


@scenario()
def tools_call_with_progress():
    response = client().call("test_tool_with_progress", _meta={"progressToken": "p-1"})
    progress = response.notifications("notifications/progress")
    equal([(one["progressToken"], one["progress"]) for one in progress], [("p-1", 0), ("p-1", 50), ("p-1", 100)])
    assert response.result["content"]


@scenario(SESSIONS)
def tools_call_sampling():
    made = client()
    equal(made.call("test_sampling", {"prompt": "Capital?"}).result["content"][0]["text"], "LLM response: Paris")
    equal([request["method"] for request in made.asked], ["sampling/createMessage"])


def elicited(tool, arguments=None):
    made = client()
    text = made.call(tool, arguments).result["content"][0]["text"]
    assert "action=accept" in text, text
    return made.asked[0]["params"]["requestedSchema"]["properties"]


@scenario(sessions_since("2025-06-18"))
def tools_call_elicitation():
    equal(set(elicited("test_elicitation", {"message": "Who?"})), {"username", "email"})


@scenario(sessions_since("2025-11-25"))
def elicitation_sep1034_defaults():
    defaults = {name: value["default"] for name, value in elicited("test_elicitation_sep1034_defaults").items()}
    equal(defaults, {"name": "John Doe", "age": 30, "score": 95.5, "status": "active", "verified": True})


@scenario(sessions_since("2025-11-25"))
def elicitation_sep1330_enums():
    schemas = elicited("test_elicitation_sep1330_enums")
    assert schemas["untitledSingle"]["enum"] and schemas["titledSingle"]["oneOf"][0]["title"]
    assert schemas["legacyEnum"]["enumNames"] and schemas["untitledMulti"]["items"]["enum"]
    assert schemas["titledMulti"]["items"]["anyOf"][0]["const"]


@scenario()
def server_sse_multiple_streams():
    made = client()
    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(made.call, "test_tool_with_progress", _meta={"progressToken": str(n)}) for n in range(3)]
        for number, call in enumerate(calls):
            progress = call.result().notifications("notifications/progress")
            equal({one["progressToken"] for one in progress}, {str(number)})


# Resources and prompts


@scenario()
def resources_list():
    for resource in client().request("resources/list").result["resources"]:
        assert resource["uri"] and resource["name"]


def read(uri):
    return client().request("resources/read", {"uri": uri}).result["contents"][0]


@scenario()
def resources_read_text():
    assert read("test://static-text")["text"]


@scenario()
def resources_read_binary():
    assert base64.b64decode(read("test://static-binary")["blob"]).startswith(b"\x89PNG")


@scenario()
def resources_templates_read():
    templates = client().request("resources/templates/list").result["resourceTemplates"]
    equal([template["uriTemplate"] for template in templates], ["test://template/{id}/data"])
    assert '"id": "123"' in read("test://template/123/data")["text"]


@scenario(SESSIONS)
def resources_subscribe_and_unsubscribe():
    made = client()
    for method in ("resources/subscribe", "resources/unsubscribe"):
        equal(made.request(method, {"uri": "test://watched-resource"}).result, {})


@scenario(needs_app=False)
def resource_not_found():
    uri = "test://nonexistent-resource-for-conformance-testing"
    response = client().request("resources/read", {"uri": uri})
    # -32002 before 2026-07-28. An app of 2026-07-28 sends -32602 to every client, because it may have another reason.
    assert response.code in ([-32602] if VERSION == STATELESS else [-32002, -32602]), response.final
    equal(response.final["error"]["data"]["uri"], uri)


def messages(prompt, **arguments):
    found = client().request("prompts/get", {"name": prompt, "arguments": arguments}).result["messages"]
    return [message["content"] for message in found]


@scenario()
def prompts():
    names = {prompt["name"] for prompt in client().request("prompts/list").result["prompts"]}
    assert {"test_simple_prompt", "test_prompt_with_arguments"} <= names
    equal(messages("test_simple_prompt")[0]["text"], "This is a simple prompt for testing.")
    equal(messages("test_prompt_with_arguments", arg1="hello", arg2="world")[0]["text"],
          "Prompt with arguments: arg1='hello', arg2='world'")
    embedded = messages("test_prompt_with_embedded_resource", resourceUri="test://example")
    equal(embedded[0]["resource"]["uri"], "test://example")
    equal([block["type"] for block in messages("test_prompt_with_image")], ["image", "text"])


def main():
    import stateless_scenarios  # noqa: F401, adds the scenarios of 2026-07-28

    for body in scenarios:
        try:
            body()
            print("ok", body.__name__, flush=True)
        except Exception as error:  # noqa: BLE001, every failure is reported
            place = traceback.extract_tb(error.__traceback__)[-1]
            reason = str(error) or f"{type(error).__name__} {place.line}"
            print(f"failed {body.__name__}: line {place.lineno}: {reason[:500]}", flush=True)


if __name__ == "__main__":
    sys.modules["scenarios"] = sys.modules["__main__"]
    main()
