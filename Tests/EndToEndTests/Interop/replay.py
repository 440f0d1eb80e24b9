"""Sends the requests of a recorded session of a client library again, and compares the responses with the recorded ones.

Usage: replay.py PORT GRANT PATH TRACE

A file in `traces` has what the library sent to an app's URL in one session, with a server of `Conformance/app.py` behind the
broker. `MCP` stands for the path of the app's URL, and `SESSION0` for the ID that the broker gives. `expected` has the status, the
type, and the members of the result or the code of the error.
"""

import http.client
import json
import sys

from peer import messages

port, grant, path, trace = sys.argv[1:]
sessions = {}
streams = []


def opened(request):
    """Sends a request and returns the response before its body."""
    headers = {name: sessions.get(value, value) for name, value in request["headers"].items()}
    headers |= {"Authorization": f"Bearer {grant}", "Accept-Encoding": "identity"}
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
    body = json.dumps(request["body"]).encode() if "body" in request else None
    connection.request(request["method"], path if request["path"] == "MCP" else request["path"], body, headers)
    response = connection.getresponse()
    streams.append((connection, response))
    return response


def outcome(response, request, expected):
    """Returns the parts of a response that `expected` has."""
    found = {"status": response.status}
    kind = (response.headers.get("Content-Type") or "").split(";")[0]
    if "type" in expected:
        found["type"] = kind
    if "session" in expected:
        sessions[expected["session"]] = response.headers["Mcp-Session-Id"]
        found["session"] = expected["session"] if sessions[expected["session"]] else None
    if "result" in expected or "error" in expected:
        answers = [one for one in messages({"content-type": kind}, response.read()) if one.get("id") == request["body"]["id"]]
        if "result" in answers[-1]:
            found["result"] = sorted(answers[-1]["result"])
        else:
            found["error"] = answers[-1]["error"]["code"]
    return found


with open(trace) as file:
    requests = json.load(file)["requests"]
for request in requests:
    expected = request["expected"]
    name = f"{request['method']} {request.get('body', {}).get('method', request['path'])}"
    found = outcome(opened(request), request, expected)
    print(f"ok {name}" if found == expected else f"FAIL {name}: {found} instead of {expected}", flush=True)
