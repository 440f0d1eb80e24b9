"""The tools that MCP's conformance scenarios need. Their names are those of the official suite."""

import base64
import hashlib
import hmac
import json
import struct
import time
import zlib

KEY = b"state of the conformance app"
# Queues of the streams of changes: each with the set of the kinds that its client subscribed to.
listeners = []
extra_tools = []
extra_prompts = []


def publish(method, kind):
    for kinds, events in list(listeners):
        if kind in kinds:
            events.put((method, {}))


class Refusal(Exception):
    def __init__(self, code, message, data=None, status=200):
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({"data": data} if data is not None else {})
        self.status = status


class InputRequired(Exception):
    def __init__(self, requests, state=None):
        super().__init__()
        self.result = {"resultType": "input_required"}
        if requests:
            self.result["inputRequests"] = requests
        if state is not None:
            self.result["requestState"] = state


def png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    body = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def wav():
    return b"RIFF" + struct.pack("<I", 38) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8) + b"data" + struct.pack("<I", 2) + b"\x80\x80"


def text(words):
    return {"type": "text", "text": words}


def encoded(data):
    return base64.b64encode(data).decode()


IMAGE = {"type": "image", "data": encoded(png()), "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": encoded(wav()), "mimeType": "audio/wav"}


def embedded(uri, mime, content):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": content}}


def form(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


def elicitation(message, **properties):
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": form(**properties)}}


def sampling(words, tokens=100):
    message = {"role": "user", "content": text(words)}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": tokens}}


ROOTS = {"method": "roots/list", "params": {}}


def signed(value):
    return value + "." + hmac.new(KEY, value.encode(), hashlib.sha256).hexdigest()


def state_of(call):
    """The value in the request state; a refusal if the client changed it."""
    value = (call.state or "").split(".")[0]
    if call.state != signed(value):
        raise Refusal(-32602, "the request state was changed", status=400)
    return value


def content_of(call, key):
    """The content of an accepted elicitation; None if the client sent none."""
    response = call.responses.get(key)
    return response.get("content") if isinstance(response, dict) and isinstance(response.get("content"), dict) else None


def needs(call, key, request, state=None):
    if not isinstance(call.responses.get(key), dict):
        raise InputRequired({key: request}, state)
    return call.responses[key]


def log_tool(call):
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        call.notify("notifications/message", {"level": "info", "data": words})
        time.sleep(0.05)
    return [text("logged")]


def progress_tool(call):
    for done in (0, 50, 100):
        if call.token is not None:
            call.notify("notifications/progress", {"progressToken": call.token, "progress": done, "total": 100})
        time.sleep(0.05)
    return [text("done")]


def sampling_tool(call):
    result = call.ask("sampling", sampling(call.arguments["prompt"]))
    return [text("LLM response: " + result["content"]["text"])]


def elicitation_tool(call):
    request = elicitation(call.arguments["message"], username={"type": "string"}, email={"type": "string"})
    result = call.ask("elicitation", request)
    return [text(f"User response: action={result['action']}, content={json.dumps(result.get('content'))}")]


def completed(call, schema):
    params = {"message": "Please review", "requestedSchema": {"type": "object", "properties": schema}}
    result = call.ask("elicitation", {"method": "elicitation/create", "params": params})
    return [text(f"Elicitation completed: action={result['action']}, content={json.dumps(result.get('content'))}")]


def defaults_tool(call):
    return completed(call, {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    })


def titled(*names):
    return [{"const": name, "title": name.title()} for name in names]


def enums_tool(call):
    plain = ["option1", "option2", "option3"]
    return completed(call, {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled("value1", "value2")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("value1", "value2")}},
    })


def input_elicitation(call):
    content = content_of(call, "user_name") or {}
    if not isinstance(content.get("name"), str):
        raise InputRequired({"user_name": elicitation("What is your name?", name={"type": "string"})})
    return [text(f"Hello, {content['name']}!")]


def input_sampling(call):
    answer = needs(call, "capital_question", sampling("What is the capital of France?"))
    return [text(answer["content"]["text"])]


def input_roots(call):
    answer = needs(call, "client_roots", ROOTS)
    return [text(" ".join(root["uri"] for root in answer["roots"]))]


def input_state(call):
    needs(call, "confirm", elicitation("Please confirm", ok={"type": "boolean"}), signed("confirm"))
    return [text("state-ok " + state_of(call))]


def input_multiple(call):
    requests = {
        "user_name": elicitation("What is your name?", name={"type": "string"}),
        "greeting": sampling("Generate a greeting", 50),
        "client_roots": ROOTS,
    }
    if not all(isinstance(call.responses.get(key), dict) for key in requests):
        raise InputRequired(requests, signed("multiple"))
    return [text(state_of(call))]


def input_rounds(call):
    if "step1" not in call.responses and "step2" not in call.responses:
        raise InputRequired({"step1": elicitation("Step 1: What is your name?", name={"type": "string"})}, signed("1"))
    if state_of(call) == "1":
        raise InputRequired({"step2": elicitation("Step 2: Which color?", color={"type": "string"})}, signed("2"))
    return [text("rounds done")]


def input_capabilities(call):
    requests = {
        "name": elicitation("What is your name?", name={"type": "string"}),
        "greeting": sampling("Generate a greeting", 50),
    }
    allowed = {key: value for key, value in requests.items() if value["method"].split("/")[0] in call.capabilities}
    raise InputRequired(allowed)


def needs_sampling(call):
    if "sampling" not in call.capabilities:
        data = {"requiredCapabilities": {"sampling": {}}}
        raise Refusal(-32021, "the client lacks sampling", data, status=400)
    return [text("sampled")]


def change_tools(call):
    extra_tools.append({"name": f"test_extra_{len(extra_tools)}", "inputSchema": {"type": "object"}})
    publish("notifications/tools/list_changed", "toolsListChanged")
    return [text("changed")]


def change_prompts(call):
    extra_prompts.append({"name": f"test_extra_{len(extra_prompts)}", "description": "Another prompt"})
    publish("notifications/prompts/list_changed", "promptsListChanged")
    return [text("changed")]


def error_tool(call):
    raise ValueError("This tool intentionally returns an error for testing")


def required(name):
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


HEADER_SCHEMA = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "query": {"type": "string"}},
    "required": ["region"],
}
TOOLS = {
    "test_simple_text": (None, lambda call: [text("This is a simple text response for testing.")]),
    "test_image_content": (None, lambda call: [IMAGE]),
    "test_audio_content": (None, lambda call: [AUDIO]),
    "test_embedded_resource": (
        None, lambda call: [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
    ),
    "test_multiple_content_types": (None, lambda call: [
        text("Multiple content types test:"), IMAGE,
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ]),
    "test_tool_with_logging": (None, log_tool),
    "test_error_handling": (None, error_tool),
    "test_tool_with_progress": (None, progress_tool),
    "test_sampling": (required("prompt"), sampling_tool),
    "test_elicitation": (required("message"), elicitation_tool),
    "test_elicitation_sep1034_defaults": (None, defaults_tool),
    "test_elicitation_sep1330_enums": (None, enums_tool),
    "test_trigger_tool_change": (None, change_tools),
    "test_trigger_prompt_change": (None, change_prompts),
    "test_with_header": (HEADER_SCHEMA, lambda call: [text(call.arguments["region"])]),
}
MODERN_TOOLS = {
    "test_input_required_result_elicitation": (None, input_elicitation),
    "test_input_required_result_sampling": (None, input_sampling),
    "test_input_required_result_list_roots": (None, input_roots),
    "test_input_required_result_request_state": (None, input_state),
    "test_input_required_result_multiple_inputs": (None, input_multiple),
    "test_input_required_result_multi_round": (None, input_rounds),
    "test_input_required_result_tampered_state": (None, input_state),
    "test_input_required_result_capabilities": (None, input_capabilities),
    "test_missing_capability": (None, needs_sampling),
}
