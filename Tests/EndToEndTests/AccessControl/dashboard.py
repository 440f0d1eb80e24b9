"""The dashboard's page and sign-in, as a browser and as attackers use them. Runs as root, prints one line per fact.

  attacks SOCKET PORT REMOTE_PORT GRANT_SOCKET   uses codes and sessions as other users, pages and listeners
  late SOCKET PORT                               uses a code after 60 s
  member SOCKET PORT GROUP_FILE GID              signs in as a member of the owners' group, and leaves the group
"""

import gzip
import http.client
import json
import os
import re
import ssl
import sys
import threading
import time

sys.dont_write_bytecode = True
from api_client import unix

NOBODY = 65534


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    def __getitem__(self, name):
        return json.loads(self.body)[name]


def send(connection, method, path, document=None, token=None, more={}):
    headers = dict(more)
    if document is not None:
        headers["Content-Type"] = "application/json"
    if token:
        headers["Authorization"] = f"Bearer {token}"
    connection.request(method, path, None if document is None else json.dumps(document), headers)
    answer = Answer(connection.getresponse())
    connection.close()
    return answer


def tcp(port, *request, host="127.0.0.1", **more):
    return send(http.client.HTTPConnection(host, int(port), timeout=20), *request, **more)


def control(path, *request, **more):
    connection = http.client.HTTPConnection("localhost")
    connection.sock = unix(path)
    return send(connection, *request, **more)


def remote(port, *request, **more):
    context = ssl._create_unverified_context()
    return send(http.client.HTTPSConnection("127.0.0.1", int(port), context=context, timeout=20), *request, **more)


def as_user(uid, work, groups=()):
    """Runs work as another user, in these groups, and returns its result."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setgroups(list(groups))
        os.setgid(NOBODY)
        os.setuid(uid)
        try:
            result = work()
        except Exception as error:
            result = repr(error)
        os.write(writer, json.dumps(result).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as results:
        result = json.load(results)
    os.wait()
    return result


def new_code(path):
    return control(path, "POST", "/v1/dashboard/codes")["code"]


def sign_in(port, code, **more):
    return tcp(port, "POST", "/v1/dashboard/sessions", {"code": code}, **more)


def show(name, *facts):
    print(f"{name}:", *facts)


def page(port, remote_port, path):
    index = tcp(port, "GET", "/")
    show("index", index.status, index.headers["content-type"], index.headers["cache-control"])
    show("policy", index.headers["content-security-policy"])
    show("headers", index.headers["x-content-type-options"], index.headers["referrer-policy"])
    packed = tcp(port, "GET", "/", more={"Accept-Encoding": "br, gzip"})
    show("gzip", packed.headers["content-encoding"], gzip.decompress(packed.body) == index.body)
    show("unchanged", tcp(port, "GET", "/", more={"If-None-Match": index.headers["etag"]}).status)
    files = re.findall(r"dashboard/[0-9a-f]{16}/[\w.-]+", index.body.decode())
    answers = [tcp(port, "GET", f"/{file}") for file in files]
    show("files", {(answer.status, answer.headers["cache-control"]) for answer in answers} or
         {(200, "public, max-age=31536000, immutable")})
    show("old hash", tcp(port, "GET", "/dashboard/0123456789abcdef/app.js").status)
    show("remote", remote(remote_port, "GET", "/").status, "unix", control(path, "GET", "/").status)


def attacks(path, port, remote_port, grant_socket):
    page(port, remote_port, path)
    show("codes", tcp(port, "POST", "/v1/dashboard/codes").status,
         as_user(NOBODY, lambda: control(path, "POST", "/v1/dashboard/codes").status))
    code = new_code(path)
    show("other user", as_user(NOBODY, lambda: sign_in(port, code).status))
    show("other listeners", control(path, "POST", "/v1/dashboard/sessions", {"code": code}).status,
         remote(remote_port, "POST", "/v1/dashboard/sessions", {"code": code}).status)
    host = f"127.0.0.1:{port}"
    own, foreign = {"Origin": f"http://{host}"}, {"Origin": "http://localhost:3000"}
    show("other origin", sign_in(port, code, more=foreign).status,
         sign_in(port, code, more=foreign | {"Sec-Fetch-Site": "same-site"}).status,
         sign_in(port, code, more={"Sec-Fetch-Site": "same-site"}).status,
         sign_in(port, code, more={"Host": f"evil.test:{port}", "Origin": f"http://evil.test:{port}"}).status)
    for site in ("none", "same-origin", "same-site", "cross-site"):
        show(f"page from {site}", tcp(port, "GET", "/", more={"Sec-Fetch-Site": site}).status)
    show("wrong code", sign_in(port, code[:-1]).status)
    signed_in = sign_in(port, code, more=own | {"Sec-Fetch-Site": "same-origin"})
    token, grant = signed_in["token"], signed_in["grant"]
    show("right code", signed_in.status, grant["binding"], grant["name"])
    show("second use", sign_in(port, code).status)

    show("session", tcp(port, "GET", "/v1/grants/self", token=token)["id"] == grant["id"],
         tcp(port, "GET", "/v1/audit", token=token).status,
         tcp(port, "GET", "/v1/audit", token=token, more={"Sec-Fetch-Site": "same-origin"}).status,
         tcp(port, "GET", "/v1/audit", token=token, more=foreign).status)
    show("session of another user", as_user(NOBODY, lambda: tcp(port, "GET", "/v1/status", token=token).status))
    show("session elsewhere", remote(remote_port, "GET", "/v1/status", token=token).status,
         control(path, "GET", "/v1/status", token=token).status,
         as_user(NOBODY, lambda: control(path, "GET", "/v1/status", token=token).status),
         control(grant_socket, "GET", "/v1/status", token=token).status)
    show("no new code", tcp(port, "POST", "/v1/dashboard/codes", token=token).status)
    invite = {"permissions": {"scopes": ["registry.read"], "selector": "all"}}
    created = tcp(port, "POST", "/v1/invites?qr=true", invite, token=token)
    show("invite", created.status, set("".join(created["qr"])) == {"0", "1"}, "dashboard" not in created["invite"])
    show("listed", [entry["binding"] for entry in control(path, "GET", "/v1/grants")["grants"]
                    if entry["id"] == grant["id"]])

    stream = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
    stream.request("GET", "/v1/events?topics=all", headers={"Authorization": f"Bearer {token}"})
    events, names = stream.getresponse(), set()
    wanted = {"snapshot", "devices", "status", "tunnels", "leases", "access-requests", "invites", "grants", "agents",
              "problems"}
    while not wanted <= names:
        line = events.readline().decode()
        if line.startswith("event: "):
            names.add(line[7:].strip())
    show("topics", sorted(names) == sorted(wanted))
    show("sign out", tcp(port, "DELETE", "/v1/grants/self", token=token).status)
    try:
        while events.read1(65536):
            pass
        ended = "ended"
    except (ConnectionError, http.client.HTTPException):
        ended = "ended"
    except TimeoutError:
        ended = "open"
    show("stream", ended)
    show("after", tcp(port, "GET", "/v1/status", token=token).status)
    actions = [json.loads(line)["event"]["action"] for line in control(path, "GET", "/v1/audit?limit=1000")["lines"]]
    show("audit", actions.count("dashboard-code"), actions.count("signed-in"))


def late(path, port):
    code = new_code(path)
    time.sleep(61)
    show("late", sign_in(port, code).status)


def member(path, port, group_file, gid):
    user, other, groups = 4242, 4243, [int(gid)]
    # By the groups of its process an owner on the control socket, but no member in the user database.
    show("no member", as_user(other, lambda: [control(path, "GET", "/v1/audit").status,
                                              control(path, "POST", "/v1/dashboard/codes").status], groups))
    code = as_user(user, lambda: new_code(path), groups)
    show("root with its code", sign_in(port, code).status)
    # The process of the browser needs no groups: the user database decides.
    session = as_user(user, lambda: json.loads(sign_in(port, code).body))
    token = session["token"]
    show("member", session["grant"]["name"], session["grant"]["binding"])
    show("own", as_user(user, lambda: tcp(port, "GET", "/v1/audit", token=token).status))
    show("others", tcp(port, "GET", "/v1/audit", token=token).status,
         as_user(other, lambda: tcp(port, "GET", "/v1/audit", token=token).status))
    # Ends when the stream does, with any result.
    stream = threading.Thread(target=as_user, daemon=True,
                              args=(user, lambda: tcp(port, "GET", "/v1/events", token=token).status))
    stream.start()
    with open(group_file, "w") as file:
        file.write(f"root:x:0:\npatchbay:x:{gid}:\n")
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        status = as_user(user, lambda: tcp(port, "GET", "/v1/audit", token=token).status)
        if status != 200:
            break
        time.sleep(1)
    show("after the group", status)
    stream.join(40)
    show("stream", "open" if stream.is_alive() else "ended")


{"attacks": attacks, "late": late, "member": member}[sys.argv[1]](*sys.argv[2:])
