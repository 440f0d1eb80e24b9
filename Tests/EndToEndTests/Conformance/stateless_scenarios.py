"""The scenarios of MCP 2026-07-28, which has no sessions: metadata, headers, caching, subscriptions and input requests."""

import queue
import threading

from mcp_client import ANSWERS, META, STATELESS, Client
from scenarios import TOKEN, URL, client, equal, refused, scenario

NEW = [STATELESS]
CACHED = ["tools/list", "server/discover", "resources/list", "resources/templates/list"]
INPUT = "test_input_required_result_"


# server-stateless


@scenario(NEW, needs_app=False)
def server_discover():
    result = client().request("server/discover").result
    assert STATELESS in result["supportedVersions"] and "tools" in result["capabilities"]
    assert result["_meta"][META + "serverInfo"]["name"]


@scenario(NEW, needs_app=False)
def request_metadata_is_required():
    made = client()
    for meta in (False, made.meta(protocolVersion=None), made.meta(clientCapabilities=None)):
        refused(made.request("tools/list", meta=meta), 400, -32602)
    assert made.request("tools/list", meta=made.meta(clientInfo=None)).result["tools"]


@scenario(NEW, needs_app=False)
def unsupported_version():
    made = client()
    meta, header = made.meta(protocolVersion="2099-01-01"), {"MCP-Protocol-Version": "2099-01-01"}
    response = made.request("tools/list", headers=header, meta=meta)
    refused(response, 400, -32022)
    data = response.final["error"]["data"]
    assert STATELESS in data["supported"] and data["requested"] == "2099-01-01", data


@scenario(NEW, needs_app=False)
def version_header_and_metadata_differ():
    refused(client().request("tools/list", headers={"MCP-Protocol-Version": "2025-11-25"}), 400, -32020)


@scenario(NEW, needs_app=False)
def removed_and_unknown_methods():
    made = client()
    for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "no/such"):
        refused(made.request(method, {"uri": "test://static-text", "level": "info"}), 404, -32601)


@scenario(NEW)
def missing_capability():
    refused(Client(URL, TOKEN, STATELESS, {}).call("test_missing_capability"), 400, -32021)
    assert client().call("test_missing_capability").result["content"]


@scenario(NEW)
def log_messages_need_a_level():
    made = client()
    equal(made.call("test_tool_with_logging").notifications("notifications/message"), [])
    response = made.call("test_tool_with_logging", _meta={META + "logLevel": "info"})
    equal(len(response.notifications("notifications/message")), 3)


def changes(tool, kind, method):
    """Opens a stream of changes, makes a change, and checks what arrives."""
    made = client()
    found = queue.Queue()

    def receive(message):
        found.put(message)
        return message.get("method") != method

    def listen():
        made.request("subscriptions/listen", {"notifications": {kind: True}}, on_message=receive)

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    first = found.get(timeout=20)
    equal(first["method"], "notifications/subscriptions/acknowledged")
    equal(first["params"]["notifications"], {kind: True})
    # The broker follows the app in the background. A change before that is reported when the broker lists again.
    for _ in range(10):
        client().call(tool)
        try:
            change = found.get(timeout=3)
            break
        except queue.Empty:
            continue
    else:
        raise AssertionError(f"no {method} arrived")
    equal(change["method"], method)
    for message in (first, change):
        assert message["params"]["_meta"][META + "subscriptionId"] is not None
    thread.join(timeout=20)


@scenario(NEW)
def changed_tools_reach_subscribers():
    changes("test_trigger_tool_change", "toolsListChanged", "notifications/tools/list_changed")


@scenario(NEW)
def changed_prompts_reach_subscribers():
    changes("test_trigger_prompt_change", "promptsListChanged", "notifications/prompts/list_changed")


# caching


def has_hints(result):
    assert isinstance(result["ttlMs"], int) and result["ttlMs"] >= 0, result
    assert result["cacheScope"] in ("public", "private"), result
    equal(result["resultType"], "complete")


@scenario(NEW, needs_app=False)
def caching():
    for method in CACHED:
        has_hints(client().request(method).result)


@scenario(NEW)
def caching_of_prompts_and_contents():
    has_hints(client().request("prompts/list").result)
    has_hints(client().request("resources/read", {"uri": "test://static-text"}).result)


# http-header-validation


@scenario(NEW, needs_app=False)
def standard_headers():
    made = client()
    tool = made.request("tools/list").result["tools"][0]["name"]
    for headers in ({"Mcp-Method": "prompts/list"}, {"Mcp-Method": "TOOLS/LIST"}, {"Mcp-Method": None}):
        refused(made.request("tools/list", headers=headers), 400, -32020)
    for name in ("another", None):
        refused(made.request("tools/call", {"name": tool, "arguments": {}}, {"Mcp-Name": name}), 400, -32020)
    for name in ("mcp-method", "MCP-METHOD"):
        assert made.request("tools/list", headers={name: "tools/list"}).result
    response = made.request("tools/call", {"name": tool, "arguments": {}}, {"Mcp-Name": f"  {tool}  "})
    assert response.result["content"]


@scenario(NEW)
def parameter_headers():
    made = client()
    made.request("tools/list")

    def call(value, region="eu"):
        params = {"name": "test_with_header", "arguments": {"region": region}}
        return made.request("tools/call", params, {"Mcp-Param-Region": value})

    equal(call("eu").result["content"][0]["text"], "eu")
    equal(call("=?base64?ZXU=?=").result["content"][0]["text"], "eu")
    for wrong in ("us", "=?base64?ZXU?=", "=?base64?Z!U=?=", None):
        refused(call(wrong), 400, -32020)


# input-required-result


def required(response):
    equal(response.result["resultType"], "input_required")
    return response.result.get("inputRequests") or {}, response.result.get("requestState")


def accepted(**values):
    return {"action": "accept", "content": values}


@scenario(NEW)
def input_required_elicitation():
    made = client()
    requests, _ = required(made.call(INPUT + "elicitation"))
    equal((list(requests), requests["user_name"]["method"]), (["user_name"], "elicitation/create"))
    extra = {"user_name": accepted(name="Alice"), "unknown": {"action": "cancel"}}
    for responses in ({"user_name": accepted(name="Alice")}, extra):
        result = made.call(INPUT + "elicitation", inputResponses=responses).result
        equal((result["resultType"], result["content"][0]["text"]), ("complete", "Hello, Alice!"))
    # Wrong keys and contents are asked for again.
    for wrong in ({"wrong": accepted(name="Alice")}, {"user_name": accepted(name=7)}):
        response = made.call(INPUT + "elicitation", inputResponses=wrong)
        assert response.code is not None or "user_name" in required(response)[0]


@scenario(NEW)
def input_required_sampling_and_roots():
    made = client()
    requests, _ = required(made.call(INPUT + "sampling"))
    equal(requests["capital_question"]["method"], "sampling/createMessage")
    answer = {"capital_question": ANSWERS["sampling/createMessage"]}
    equal(made.call(INPUT + "sampling", inputResponses=answer).result["content"][0]["text"], "Paris")
    requests, _ = required(made.call(INPUT + "list_roots"))
    equal(requests["client_roots"]["method"], "roots/list")
    answer = {"client_roots": ANSWERS["roots/list"]}
    equal(made.call(INPUT + "list_roots", inputResponses=answer).result["content"][0]["text"], "file:///one")


@scenario(NEW)
def input_required_state():
    made = client()
    for tool in ("request_state", "tampered_state"):
        _, state = required(made.call(INPUT + tool))
        responses = {"confirm": accepted(ok=True)}
        text = made.call(INPUT + tool, inputResponses=responses, requestState=state).result["content"][0]["text"]
        assert "state-ok" in text
        changed = state[:-1] + ("0" if state[-1] != "0" else "1")
        response = made.call(INPUT + tool, inputResponses=responses, requestState=changed)
        assert response.code == -32602 or response.final["result"]["isError"] is True, response.final


@scenario(NEW)
def input_required_multiple_requests():
    made = client()
    requests, state = required(made.call(INPUT + "multiple_inputs"))
    equal(set(requests), {"user_name", "greeting", "client_roots"})
    answers = {key: ANSWERS[request["method"]] for key, request in requests.items()}
    result = made.call(INPUT + "multiple_inputs", inputResponses=answers, requestState=state).result
    equal(result["resultType"], "complete")


@scenario(NEW)
def input_required_rounds():
    made = client()
    requests, first = required(made.call(INPUT + "multi_round"))
    equal(list(requests), ["step1"])
    answers = {"step1": accepted(name="Alice")}
    requests, second = required(made.call(INPUT + "multi_round", inputResponses=answers, requestState=first))
    equal((list(requests), first != second), (["step2"], True))
    answers = {"step2": accepted(color="blue")}
    result = made.call(INPUT + "multi_round", inputResponses=answers, requestState=second).result
    equal(result["content"][0]["text"], "rounds done")


@scenario(NEW)
def input_required_prompt():
    made = client()
    name = {"name": INPUT + "prompt", "arguments": {}}
    requests, _ = required(made.request("prompts/get", name))
    equal(list(requests), ["user_context"])
    answers = {"inputResponses": {"user_context": accepted(context="test")}}
    assert made.request("prompts/get", name | answers).result["messages"]


@scenario(NEW)
def input_required_capabilities():
    requests, _ = required(Client(URL, TOKEN, STATELESS, {"sampling": {}}).call(INPUT + "capabilities"))
    equal({request["method"] for request in requests.values()}, {"sampling/createMessage"})


@scenario(NEW, needs_app=False)
def lists_require_no_input():
    for method in ("tools/list", "resources/list", "server/discover"):
        equal(client().request(method).result["resultType"], "complete")
