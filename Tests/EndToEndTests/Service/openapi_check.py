"""Calls operations of the broker at the socket in argv[1], and validates the responses against its openapi.json."""

import http.client
import json
import re
import socket
import sys

from jsonschema import Draft202012Validator, FormatChecker

# What was wrong, and the operations that were called.
wrong = []
used = set()


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(sys.argv[1])


def call(method, target, body=None, media="application/json", more={}):
    connection = Connection("localhost")
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, target, data, ({"Content-Type": media} if data is not None else {}) | more)
    answer = connection.getresponse()
    kind = answer.getheader("Content-Type")
    if (answer.status == 405) != bool(answer.getheader("Allow")):
        sys.exit(f"WRONG: {answer.status} comes with Allow: {answer.getheader('Allow')} (RFC 9110, section 15.5.6)")
    # An event stream ends with its connection, which also removes ephemeral objects.
    content = answer.read1(65536) if kind == "text/event-stream" else answer.read()
    connection.close()
    return answer.status, kind, content


document = json.loads(call("GET", "/openapi.json")[2])


def closed(schema):
    """Returns the schema without additional members, so that undocumented members are errors."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: closed(part) for key, part in schema.items()}
    if "properties" in schema and schema.get("type") == "object":
        strict.setdefault("additionalProperties", False)
    return strict


components = {"schemas": closed(document["components"]["schemas"])}


def complaint(schema, content):
    validator = Draft202012Validator({**schema, "components": components}, format_checker=FormatChecker())
    return "; ".join(f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(json.loads(content)))


def mistyped(value):
    """Yields the body with an unknown member in each of its objects, and with each member misspelt."""
    if isinstance(value, list):
        for index, element in enumerate(value):
            yield from (value[:index] + [other] + value[index + 1:] for other in mistyped(element))
    if isinstance(value, dict):
        yield value | {"zzz": 1}
        for name, member in value.items():
            yield {key + key[-1] * (key == name): other for key, other in value.items()}
            yield from (value | {name: other} for other in mistyped(member) if name != "arguments")


def refuse(method, target, body, more, words):
    """Sends a successful request with something mistyped, which must be refused with these words."""
    got, _, content = call(method, target, body, more=more)
    if got != 400 or words not in json.loads(content)["detail"]:
        wrong.append(target)
        print("WRONG", got, method, target[:80], "accepts", body, content[:200])


def refuse_mistyped(method, target, body, more):
    """Sends a successful request with an unknown and with each misspelt query parameter, and its body with mistyped members."""
    path, _, query = target.partition("?")
    pairs = [pair for pair in query.split("&") if pair]
    for others in [pairs + ["zzz=1"]] + [pairs[:index] + ["x" + pair] + pairs[index + 1:] for index, pair in enumerate(pairs)]:
        refuse(method, path + "?" + "&".join(others), body, more, "there is no query parameter")
    if method != "GET" and not isinstance(body, bytes):
        for other in mistyped({} if body is None else body):
            refuse(method, target, other, more, "there is no member")


def expect(status, method, target, body=None, media="application/json", more={}):
    """Makes one call and validates its status, media type and document against the operation."""
    if status < 400 and target.startswith("/v1/"):
        refuse_mistyped(method, target, body, more)
    got, kind, content = call(method, target, body, media, more)
    plain = target.split("?")[0]
    route = max(
        (p for p in document["paths"] if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", p), plain)),
        key=lambda p: p.count("/") * 10 - p.count("{"), default=None,
    )
    operation = document["paths"].get(route, {}).get(method.lower())
    if operation:
        used.add((method, route))
        answers = operation["responses"]
        described = answers.get(str(got)) or answers["default"]
        if got < 400 and str(got) not in answers:
            described = {"content": {}}
    else:
        described = {"content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    kinds = described.get("content", {})
    said = []
    if got != status:
        said.append(f"{got} instead of {status}: {content[:300]!r}")
    if kind not in kinds and (kinds or content) and "*/*" not in kinds:
        said.append(f"it is {kind}, and described is {list(kinds) or 'nothing'}")
    schema = kinds.get(kind, {}).get("schema")
    if schema and complaint(schema, content):
        said.append(complaint(schema, content))
    if kind == "application/problem+json" and json.loads(content).get("status") != got:
        said.append("the problem names another status")
    wrong.extend(said)
    print("WRONG" if said else "ok", status, method, target[:80], *said)
    if "*/*" in kinds:
        return content
    return json.loads(content) if content and not kind.startswith("text/") else None
