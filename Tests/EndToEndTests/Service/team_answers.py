"""Requests to every route of a team whose etcd does not run, so no host can be admitted."""

import subprocess


def ask_team(expect):
    assert expect(200, "GET", "/v1/team")["hosts"] == []
    for method, target in (("DELETE", "/v1/team"), ("DELETE", "/v1/team/members/lab2")):
        expect(409, method, target)
    request = subprocess.run(
        ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/",
         "-keyout", "/dev/null"], capture_output=True, text=True, check=True).stdout
    node = {"request": request, "addresses": ["10.0.0.5"]}
    expect(409, "POST", "/v1/team/certificates", node)
    expect(409, "POST", "/v1/team/invites", {})
    expect(400, "POST", "/v1/team/join", {"pairing": "PATCHBAY-TEAM:1"})
    team = {"team": "lab", "host": "lab1", "etcd": ["https://127.0.0.1:9"]}
    expect(400, "POST", "/v1/team", team | {"etcd": ["http://127.0.0.1:9"]})
    created = expect(201, "POST", "/v1/team", team)
    assert created["authority"] == "lab1" and not created["restartNeeded"] and "unreachable" in created["problem"], created
    assert expect(200, "GET", "/v1/team")["etcd"][0]["problem"]
    expect(409, "POST", "/v1/team", team | {"team": "other"})
    issued = expect(201, "POST", "/v1/team/certificates", node)
    assert all(pem.startswith("-----BEGIN CERTIFICATE") for pem in issued.values()), issued
    expect(400, "POST", "/v1/team/certificates", node | {"request": "none"})
    expect(400, "POST", "/v1/team/certificates", node | {"addresses": ["10.0.0.256"]})
    invite = {"address": "127.0.0.1", "hosts": 50, "seconds": 86400, "names": ["lab*"]}
    assert expect(201, "POST", "/v1/team/invites", invite)["pairing"].startswith("PATCHBAY-TEAM:1")
    assert len(expect(200, "GET", "/v1/team/invites")["invites"]) == 1
    expect(404, "DELETE", "/v1/team/invites/none")
    member = {"invite": "pbi_none", "host": "lab2", "request": request}
    expect(401, "POST", "/v1/team/members", member)
    expect(403, "POST", "/v1/team/members/renewal", {"request": request})
    expect(503, "DELETE", "/v1/team/members/lab2")
    expect(404, "DELETE", "/v1/team/members/LAB")
    expect(204, "DELETE", "/v1/team")
    assert "team" not in expect(200, "GET", "/v1/team")
