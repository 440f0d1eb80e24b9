"""Processes of several users that call the broker. The first argument selects the scenario. SOCKET and PORT are the
broker's listeners.

  nobody SOCKET                 sends all kinds of requests as a user without ownership
  member SOCKET GROUP           sends owner requests as processes with several sets of groups
  bound SOCKET PORT             uses a grant of one user as other users
  guests SOCKET PORT            opens more connections than one user may have, and more than there are in total
  recycled PROGRAM STATE SOCKET requests access and gives the requester's PID to another process
"""

import json
import os
import subprocess
import sys
import time

from api_client import CLIENT, ask, head, invite, pair, redeem, tcp, unix


class User:
    """A process of another user."""

    def __init__(self, work, uid, gid=65534, groups=()):
        self.out, out = os.pipe()
        held, self.held = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(self.held)
            os.setgroups(list(groups))
            os.setgid(gid)
            os.setuid(uid)
            try:
                result = work()
            except Exception as error:
                result = repr(error)
            kept = result if isinstance(result, list) else []
            os.write(out, json.dumps(len(kept) if kept else result).encode() + b"\n")
            os.read(held, 1)
            os._exit(0)
        os.close(held)
        os.close(out)

    def result(self):
        with os.fdopen(self.out) as answers:
            return json.loads(answers.readline())

    def end(self):
        # Shuts the socket down instead of closing it, because a process forked later has it open, too.
        os.write(self.held, b".")
        os.close(self.held)
        os.waitpid(self.process, 0)


def as_user(work, *who):
    user = User(work, *who)
    result = user.result()
    user.end()
    return result


def nobody(path):
    asked = {"name": "agent", "permissions": {"scopes": ["registry.read"], "selector": "all"}}
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    print(*[ask(unix(path), method, target)[0] for method, target in (
        ("GET", "/v1/endpoints"), ("GET", "/v1/grants"), ("DELETE", "/v1/grants"), ("GET", "/v1/audit"),
        ("POST", "/v1/access-requests/unlock"), ("DELETE", "/v1/tunnels"), ("GET", "/health"))],
        ask(unix(path), "POST", "/v1/access-requests", asked)[0])


def member(path, group):
    group = int(group)
    for gid, groups in ((65534, ()), (65534, (1, 2, 3)), (group, ()), (65534, (1, group, 99999)), (65534, (*range(1, 60), group))):
        print(as_user(lambda: ask(unix(path), "GET", "/v1/grants")[0], 65534, gid, groups))


def bound(path, port):
    token = invite(path, user=65534)
    print("redeemed by", *[as_user(lambda: redeem(connect(), token, CLIENT + name)[0], uid) for name, uid, connect in (
        ("a", 65533, lambda: unix(path)), ("b", 65534, lambda: tcp(port)))])
    grant = as_user(lambda: redeem(unix(path), token)[1]["token"], 65534)
    use = lambda connect: ask(connect(), "GET", "/v1/endpoints", token=grant)[0]
    print("used by", as_user(lambda: use(lambda: unix(path)), 65534), as_user(lambda: use(lambda: unix(path)), 65533),
          use(lambda: unix(path)), as_user(lambda: use(lambda: tcp(port)), 65534))


def places(count, connect, token=None):
    """Opens COUNT connections that stay open after their response; with a token they are event streams."""
    kept = []
    for _ in range(count):
        caller = connect()
        more = f"Authorization: Bearer {token}\r\n" if token else ""
        caller.sendall(head("GET", "/v1/events" if token else "/health", more=more))
        answer = caller.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200"), answer
        kept.append(caller)
    return kept


def guests(path, port):
    tokens = [pair(path, port)[1] for _ in range(5)]
    first = User(lambda: places(64, lambda: tcp(port), tokens[0]), 60001)
    assert first.result() == 64
    more = lambda connect: connect().recv(65536).decode().split()[1]
    print("one more:", as_user(lambda: more(lambda: tcp(port)), 60001), as_user(lambda: more(lambda: unix(path)), 60001),
          "another:", as_user(lambda: ask(tcp(port), "GET", "/health")[0], 60002))
    clients = [User(lambda number=number: places(60, lambda: tcp(port), tokens[1 + number]), 60002 + number) for number in range(3)]
    assert [user.result() for user in clients] == [60] * 3
    last = User(lambda: places(4, lambda: tcp(port), tokens[4]), 60009)
    assert last.result() == 4
    late = tcp(port)
    late.sendall(head("GET", "/health"))
    late.settimeout(1)
    try:
        print("WRONG: the last places are given away", late.recv(100))
    except TimeoutError:
        pass
    start = time.monotonic()
    owner = places(8, lambda: unix(path))
    print("owners come in:", len(owner), "at once" if time.monotonic() - start < 2 else "late")
    for user in [first, last] + clients:
        user.end()
    late.settimeout(20)
    print("who waited:", late.recv(65536).decode().split()[1])


def recycled(program, state, path):
    daemon = subprocess.Popen([program, "--socket", path, "--state-directory", state], stderr=subprocess.DEVNULL)
    while True:
        try:
            ask(unix(path), "GET", "/health")
            break
        except OSError:
            time.sleep(0.02)
    asked = {"name": "agent", "permissions": {"scopes": ["registry.read"], "selector": "all"}}

    def begging():
        out, into = os.pipe()
        process = os.fork()
        if process == 0:
            os.write(into, ask(unix(path), "POST", "/v1/access-requests", asked)[1]["request"]["userCode"].encode())
            time.sleep(60)
        return process, os.read(out, 100).decode()

    def end(process):
        os.kill(process, 9)
        os.waitpid(process, 0)

    approve = lambda code: ask(unix(path), "POST", f"/v1/access-requests/{code}/approve")[0]
    process, code = begging()
    print("alive:", approve(code))
    end(process)
    process, code = begging()
    end(process)
    for _ in range(1000):
        with open("/proc/sys/kernel/ns_last_pid", "w") as last:
            last.write(str(process - 1))
        other = os.fork()
        if other == 0:
            time.sleep(60)
        if other == process:
            break
        end(other)
    print("recycled:" if other == process else "WRONG: not recycled:", approve(code))
    print("asking now:", len(ask(unix(path), "GET", "/v1/access-requests")[1]["requests"]))
    end(other)
    daemon.terminate()
    daemon.wait()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
