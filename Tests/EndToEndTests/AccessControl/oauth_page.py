"""What the page of OAuth's consent does, without a browser, and the owner who answers.

The programs that import it have the arguments PATCHBAY SOCKET URL.
"""

import json
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

command, socket, url = sys.argv[1:4]
base = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(url))


def patchbay(*words):
    done = subprocess.run([command, *words], env={"PATCHBAY_SOCKET": socket, "PATH": "/usr/bin:/bin"}, text=True,
                          capture_output=True, timeout=30)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def post(path, body, form=False):
    """Returns the status and the document of an answer."""
    kind = "application/x-www-form-urlencoded" if form else "application/json"
    data = urllib.parse.urlencode(body) if form else json.dumps(body)
    request = urllib.request.Request(base + path, data.encode(), {"Content-Type": kind, "Origin": base})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def answered(address, command, *options):
    """Opens the page at an address, lets an owner answer, and returns where the page leads to."""
    assert address.startswith(base + "/oauth/authorize?"), address
    status, asked = post("/oauth/requests", {"query": urllib.parse.urlsplit(address).query})
    assert status == 201, asked
    code = asked["request"]["userCode"]
    assert code in patchbay("requests") and asked["request"]["name"] in patchbay("requests")
    secret = {"secret": asked["secret"]}
    assert post("/oauth/requests/answer", secret)[1] == {"state": "waiting"}
    patchbay("requests", command, code, *options)
    answer = post("/oauth/requests/answer", secret)[1]
    assert answer["state"] == "answered", answer
    assert post("/oauth/requests/answer", secret)[1] == {"state": "expired"}
    return answer["location"]
