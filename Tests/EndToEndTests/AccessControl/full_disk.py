"""Requests to a broker with a full disk: SOCKET PORT FOLDER, where FOLDER is the broker's state folder.

Each line of input starts the next step: fill the disk; check again, possibly with a restarted broker; free the disk.
"""

import os
import sys

sys.dont_write_bytecode = True
from api_client import CLIENT, ask, invite, pair, redeem, tcp, unix

path, port, folder = sys.argv[1:]
filler = f"{folder}/filler"


def counts(token):
    return ask(tcp(port), "GET", "/v1/endpoints", token=token)[0]


def standing(token):
    # A rejected request gets 503 if it cannot be written to the audit log.
    return {200: "in", 401: "out", 503: "out"}[counts(token)]


def step(*words):
    print(*words, flush=True)
    return sys.stdin.readline()


_, live = pair(path, port)
doomed, gone = pair(path, port)
waiting, spare = invite(path), invite(path)
step("ready")

with open(filler, "wb", buffering=0) as file:
    try:
        while True:
            file.write(b"x" * 512)
    except OSError:
        pass
# Changes that fit into partly used pages are acknowledged and must be kept; in the end nothing fits.
made = []
spec = {"permissions": {"scopes": ["registry.read"], "selector": "all"}}
while True:
    status, answer, _ = ask(unix(path), "POST", "/v1/invites", spec)
    if status != 201:
        break
    made.append(answer["token"])
refusal = f"{answer['code']}: {answer['detail']} | {answer.get('hint')}"
spend = redeem(tcp(port), waiting)[0]
end = ask(unix(path), "DELETE", f"/v1/grants/{doomed}")[0]
print(refusal)
step("full: invite", status, "redeem", spend, "revoke", end, "live", standing(live), "revoked", standing(gone))
step("again: live", standing(live), "redeem", redeem(tcp(port), spare)[0])
os.unlink(filler)
first = redeem(tcp(port), waiting)
second = redeem(tcp(port), waiting)
print("room: redeem", first[0], "the same again", first[1]["token"] == second[1]["token"], "revoke",
      ask(unix(path), "DELETE", f"/v1/grants/{doomed}")[0], "live", standing(live), "revoked", standing(gone), "redeemed",
      standing(first[1]["token"]), "audit", ask(unix(path), "GET", "/v1/audit/verify")[1].get("firstInvalidEntry"))
step("over")
lost = sum(redeem(tcp(port), token)[0] != 201 for token in made + [spare])
print("later: live", standing(live), "revoked", standing(gone), "redeemed", standing(first[1]["token"]), "lost", lost, "audit",
      ask(unix(path), "GET", "/v1/audit/verify")[1].get("firstInvalidEntry"))
