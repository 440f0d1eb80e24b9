"""Sends valid and invalid tokens and secrets to a broker in every way, for the test that searches for leaks.

  use SOCKET PORT ENDPOINT   sends them, prints each of them and the statuses, and keeps a stream open until the end of its input
  core FOLDER COMMAND...     aborts a program in FOLDER with core files enabled; prints whether it left one
"""

import json
import os
import resource
import signal
import socket
import sys
import time

sys.dont_write_bytecode = True
from api_client import CLIENT, ask, head, invite, pair, redeem, rest, tcp, unix

SCOPES = ("registry.read", "endpoint.call", "tunnel.open", "invite.create", "secret.use")
SECRET = "s3cr3tOfTheApp"


def wrong(token):
    """Returns a mistyped token, most of which is still secret."""
    return token[:-1] + ("a" if token[-1] != "a" else "b")


def use(path, port, endpoint):
    tokens, secrets, statuses = [], [], set()
    listeners = [lambda: unix(path), lambda: tcp(port), lambda: tcp(port, "::1")]

    def say(connect, method, target, document=None, token=None):
        status, answer, _ = ask(connect(), method, target, document, token)
        statuses.add(status)
        for found in (answer or {}).get("token"), (answer or {}).get("deviceCode"):
            if found:
                tokens.append(found)
        return answer

    def send(connect, data):
        caller = connect()
        try:
            caller.sendall(data)
            caller.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        answer = rest(caller)
        if answer:
            statuses.add(int(answer.split()[1]))

    def secret():
        secrets.append(SECRET + os.urandom(12).hex())
        return secrets[-1]

    for connect in listeners:
        spent, other = invite(path, SCOPES), invite(path, SCOPES, maxUses=2)
        tokens += [spent, other]
        grant = say(connect, "POST", "/v1/invites/redeem", {"token": spent, "client": CLIENT, "name": "agent"})
        token = grant["token"]
        # Right.
        say(connect, "GET", "/v1/endpoints", token=token)
        say(connect, "GET", "/v1/grants", token=token)
        issued = say(connect, "POST", "/v1/invites", {"permissions": {"scopes": ["registry.read"], "selector": "all"}}, token)
        say(connect, "POST", f"/v1/endpoints/{endpoint}/secret", {"secret": secret()}, token)
        say(connect, "POST", f"/v1/endpoints/{endpoint}/secret", {"secret": secret(), "invite": other, "client": CLIENT})
        # Wrong: tokens.
        for shown in (wrong(token), token + "x", token.lower(), spent, issued["token"], token[:40]):
            say(connect, "GET", "/v1/endpoints", token=shown)
            say(connect, "POST", "/v1/invites/redeem", {"token": shown, "client": CLIENT + "x", "name": "thief"})
        for fields in (f"Authorization: Basic {token}", f"Authorization: Bearer {token} {token}", f"X-Token: {token}\r\nHost: {token}",
                       f"Authorization: Bearer {token}\r\nAuthorization: Bearer {token}", f"Origin: http://{token}",
                       f"Authorization: Bearer {token}\r\nX: " + "x" * 20000, f"Authorization : Bearer {token}",
                       f"Transfer-Encoding: {token}", f"Content-Type: {token}\r\nContent-Length: 2"):
            send(connect, head("GET", "/v1/endpoints", more=fields + "\r\n"))
        for line in (f"{token} / HTTP/1.1", f"GET /{token}", f"GET / {token}", f"GET http://{token}/ HTTP/1.1"):
            send(connect, f"{line}\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        # Wrong: bodies.
        for body in (f'{{"token": "{other}"', f'{{"token": ["{other}"]}}', f'"{other}"', f'{{"{other}": 1}}', f'{{"token": {other}}}',
                     f'{{"token": "{other}", "client": "{other}\\u0000", "name": "x"}}', f'{{"token": "{other}", "name": {{"{other}": 1}}}}'):
            send(connect, head("POST", "/v1/invites/redeem", body.encode()))
            send(connect, head("POST", "/v1/invites/redeem", body.encode()).replace(b"application/json", b"text/plain"))
        for shown in (secret() + "\n", secret() * 200, secret() + " " + secret(), [secret()], {secret(): 1}):
            say(connect, "PUT", f"/v1/endpoints/{endpoint}/secret", {"secret": shown})
            say(connect, "POST", f"/v1/endpoints/{endpoint}/secret", {"secret": shown, "invite": wrong(other)})
            say(connect, "POST", "/v1/endpoints/no-such-one/secret", {"secret": shown}, token)
        say(connect, "POST", "/v1/invites/redeem", {"token": other, "client": CLIENT, "name": "x" * 3000})
        say(connect, "POST", "/v1/access-requests/poll", {"deviceCode": wrong(token), "client": CLIENT})
        # Tokens in URLs and cookies; this revokes them.
        for place in (f"/v1/endpoints?token={token}", f"/v1/grants/{other}"):
            send(connect, head("GET", place))
    asked = {"name": "agent", "permissions": {"scopes": ["registry.read"], "selector": "all"}}
    request = say(listeners[0], "POST", "/v1/access-requests", asked)
    say(listeners[0], "POST", f"/v1/access-requests/{request['request']['userCode']}/approve")
    polled = say(listeners[0], "POST", "/v1/access-requests/poll", {"deviceCode": request["deviceCode"], "client": CLIENT, "name": "agent"})
    tokens.append(polled["granted"]["token"])
    held, kept = pair(path, port)[1], tcp(port)
    tokens.append(held)
    kept.sendall(head("GET", "/v1/events", more=f"Authorization: Bearer {held}\r\n"))
    assert kept.recv(12) == b"HTTP/1.1 200"
    for token in set(tokens):
        print("token", token)
    for secret in secrets:
        print("secret", secret)
    print("statuses", *sorted(statuses), flush=True)
    sys.stdin.read()


def core(folder, *command):
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    reader, writer = os.pipe()
    files = [(os.POSIX_SPAWN_DUP2, reader, 0), (os.POSIX_SPAWN_OPEN, 2, "said", os.O_WRONLY | os.O_CREAT, 0o600)]
    # Where Swift is installed, its runtime catches the signal and prints a backtrace; installed systems have no such runtime.
    child = os.posix_spawnp(command[0], command, os.environ | {"SWIFT_BACKTRACE": "enable=no"}, file_actions=files)
    time.sleep(1.5)
    with open(f"/proc/{child}/limits") as file:
        limit = next(line.split()[4] for line in file if line.startswith("Max core file size"))
    os.kill(child, signal.SIGABRT)
    status = os.waitpid(child, 0)[1]
    cores = [name for name in os.listdir() if "core" in name]
    print("limit", limit, "core", os.WCOREDUMP(status), "by", os.WTERMSIG(status), "files", len(cores))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
