"""Opens the page of OAuth's consent in Chromium, and answers with `patchbay`.

usage: consent.py PATCHBAY SOCKET PORT; prints a line `ok: …` for each step, and fails at the first wrong one.
"""

import base64
import hashlib
import http.server
import json
import shutil
import subprocess
import sys
import threading
import urllib.parse
import urllib.request

from playwright.sync_api import sync_playwright

command, socket, port = sys.argv[1:4]
base = f"http://127.0.0.1:{port}"
HOSTILE = '<img src=x onerror="document.title=1">'
VERIFIER = "v" * 43
CHROMIUM = shutil.which("chromium-headless-shell") or "/usr/bin/chromium-headless-shell"


def patchbay(*words):
    done = subprocess.run([command, *words], env={"PATCHBAY_SOCKET": socket, "PATH": "/usr/bin:/bin"}, text=True,
                          capture_output=True, timeout=30)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def requests():
    return json.loads(patchbay("requests", "--json"))["requests"]


class Site(http.server.BaseHTTPRequestHandler):
    """A site of another port: `/link` leads to the consent, `/frame` frames it, and `/callback` takes the answer."""

    address = ""

    def do_GET(self):
        body = b"the client"
        if self.path == "/link":
            body = f'<a href="{self.address}">connect</a>'.replace("&", "&amp;").encode()
        elif self.path == "/frame":
            body = f'<iframe src="{self.address}"></iframe>'.replace("&", "&amp;").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


def address(client, site, **changes):
    challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
    query = {"response_type": "code", "client_id": client, "redirect_uri": f"{site}/callback", "state": "s&code=x",
             "code_challenge": challenge, "code_challenge_method": "S256", "resource": f"{base}/mcp"}
    return f"{base}/oauth/authorize?{urllib.parse.urlencode(query | changes)}"


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = f"http://localhost:{server.server_port}"
    body = json.dumps({"client_name": HOSTILE, "redirect_uris": [f"{site}/callback"]}).encode()
    request = urllib.request.Request(f"{base}/oauth/register", body, {"Content-Type": "application/json"})
    client = json.loads(urllib.request.urlopen(request).read())["client_id"]
    Site.address = address(client, site)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))

        page.goto(f"{site}/link")
        assert requests() == []
        page.click("a")
        page.wait_for_selector("h1:has-text('A client asks for access')")
        [asked] = requests()
        assert asked["userCode"] in page.inner_text("main")
        assert HOSTILE in page.inner_text("main") and page.query_selector("main img") is None
        assert site in page.inner_text("main") and asked["authorization"]["origin"] == site
        assert page.query_selector("main button") is None and page.title() == "Patchbay: access"
        print("ok: a link of another site opens the page, and a hostile name stays text")

        page.reload()
        page.wait_for_selector("h1:has-text('A client asks for access')")
        [again] = requests()
        assert again["userCode"] != asked["userCode"]
        print("ok: a page that is loaded again takes no second place")

        page.wait_for_timeout(5000)
        assert page.url.startswith(base), page.url
        patchbay("requests", "approve", again["userCode"])
        page.wait_for_url(f"{site}/callback*", timeout=10000)
        answer = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page.url).query))
        assert answer["state"] == "s&code=x" and answer["iss"] == base and len(answer["code"]) == 22, answer
        print("ok: the page leads on only after the approval")

        page.goto(address(client, site))
        page.wait_for_selector("h1:has-text('A client asks for access')")
        patchbay("requests", "deny", requests()[0]["userCode"])
        page.wait_for_url(f"{site}/callback*", timeout=10000)
        answer = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page.url).query))
        assert answer == {"error": "access_denied", "state": "s&code=x", "iss": base}, answer
        print("ok: a denial leads back without a code")

        page.goto(address(client, site, redirect_uri="https://evil.example/"))
        page.wait_for_selector("h1:has-text('This request is not possible')")
        assert page.url.startswith(base) and requests() == []
        print("ok: a wrong request stays on the page and asks nobody")

        page.goto(f"{site}/frame")
        page.wait_for_timeout(1500)
        assert requests() == [] and "asks for access" not in page.frames[-1].content()
        print("ok: the page is in no frame")

        read = page.evaluate("""async (url) => { try { return await (await fetch(url)).text() } catch { return null } }""",
                             f"{base}/.well-known/oauth-authorization-server")
        assert read is None, read
        assert errors == [], errors
        print("ok: other pages read nothing")
        browser.close()


main()
