"""What the scenes do beside the page: commands of `patchbay`, phones on their cables, apps, and agents."""

import http.client
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
SUPPORT = os.path.join(HERE, "../../TestSupport")
BASE = "http://127.0.0.1:7282"
PHONE, TABLET = "00008030-001A2B3C4D5E6F70", "00008110-0011223344556677"
programs = []
broker = int(os.environ.get("BROKER", 0))


def patchbay(*arguments, text=None, socket=None, status=0):
    environment = {**os.environ, "HOME": os.getcwd(), "XDG_STATE_HOME": ""}
    if socket:
        environment["PATCHBAY_SOCKET"] = socket
    done = subprocess.run(["patchbay", *arguments], input=text, text=True, capture_output=True, timeout=120, env=environment)
    assert done.returncode == status, (arguments, done.stdout, done.stderr)
    return done.stdout


def code(socket=None):
    """Returns a one-time code to sign in with."""
    return patchbay("dashboard", "--no-open", socket=socket).split("#code=")[1].split()[0]


def eventually(check, seconds=60):
    end = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.05)
    return found


def later(work):
    """Runs work in a thread, and returns a function that awaits its result."""
    results = queue.Queue()
    threading.Thread(target=lambda: results.put(work()), daemon=True).start()
    return lambda: results.get(timeout=60)


def settle(seconds=3):
    """Waits until the list of endpoints and their states stay the same for some seconds."""
    seen, since = None, time.monotonic()
    while time.monotonic() - since < seconds:
        endpoints = [(each["id"], each["state"]) for each in api("GET", "/v1/endpoints")[1]["endpoints"]]
        if endpoints != seen:
            seen, since = endpoints, time.monotonic()
        time.sleep(0.1)


# MARK: Phones and apps

def unplug(udid=PHONE):
    os.remove(f"usbmuxd/devices/{udid}")


def plug_in(udid=PHONE):
    shutil.copy(f"{udid}.options", "usbmuxd/new")
    os.rename("usbmuxd/new", f"usbmuxd/devices/{udid}")


def start(log, *words):
    """Starts a program with the name of its log, and returns the program when it is ready."""
    with open(log, "w") as output:
        program = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    programs.append(program)
    return program


def app(log, script, *options):
    """Starts an app, and returns its port."""
    start(log, sys.executable, script, *options)
    return int(eventually(lambda: [line for line in lines(log) if line.startswith("listening on ")])[0].split()[2])


def lines(log):
    return open(log, errors="replace").read().splitlines()


def add(name, port, *options):
    """Adds an app as an endpoint, and returns its ID."""
    return json.loads(patchbay("add", name, f"127.0.0.1:{port}", *options, "--json"))["id"]


def screen_app(name, *options):
    """Starts an app with a screen. Returns its ID, and a function that reads the calls that it received."""
    log = f"{name.encode().hex()[:40]}.log"
    id = add(name, app(log, f"{HERE}/screenapp.py", *options), "--kind", "mcp")
    return id, lambda: [json.loads(line) for line in lines(log) if line.startswith("{")]


def web_browser():
    """Starts a browser with a DevTools server, and returns its port."""
    start("chrome.log", "chromium-headless-shell", "--no-sandbox", "--disable-gpu", f"--user-data-dir={os.getcwd()}/chrome",
          "--remote-debugging-port=0", "about:blank")
    found = eventually(lambda: [line for line in lines("chrome.log") if line.startswith("DevTools listening on ")])
    return int(found[0].split(":")[2].split("/")[0])


def tab(port, act, argument):
    """Opens or closes a tab of that browser."""
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/json/{act}{'?' if act == 'new' else '/'}{argument}", method="PUT")
    with urllib.request.urlopen(asked) as response:
        answer = response.read()
    return json.loads(answer) if act == "new" else None


# MARK: The broker

def stop_broker():
    global broker
    os.kill(broker, signal.SIGKILL)
    eventually(lambda: not os.path.exists(f"/proc/{broker}") or open(f"/proc/{broker}/stat").read().split()[2] == "Z")


def start_broker():
    global broker
    broker = start("patchbayd2.log", "patchbayd", "--config", "patchbay.toml", "--socket", os.environ["PATCHBAY_SOCKET"],
                   "--state-directory", f"{os.getcwd()}/state").pid
    await_broker()


def await_broker(socket=None):
    """Returns when a broker answers."""
    def answers():
        try:
            return patchbay("status", socket=socket)
        except AssertionError:
            return None
    eventually(answers)


def code_if_ready():
    """Returns a one-time code, or None while the broker starts."""
    try:
        return code()
    except AssertionError:
        return None


def api(method, path, document=None, token=None):
    """Sends a request over the control socket, or with a token over TCP. Returns the status and the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", 7282, timeout=120)
    if not token:
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(os.environ["PATCHBAY_SOCKET"])
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    body = None
    if document is not None:
        headers["Content-Type"], body = "application/json", json.dumps(document)
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, json.loads(data) if data else None


# MARK: Agents

def grant(name, *scopes):
    """Returns the token of a new grant."""
    status, invite = api("POST", "/v1/invites", {"permissions": {"scopes": list(scopes), "selector": "all"}})
    assert status == 201, invite
    asked = {"token": invite["token"], "client": os.urandom(16).hex(), "name": name}
    status, redeemed = api("POST", "/v1/invites/redeem", asked)
    assert status in (200, 201), redeemed
    return redeemed["token"]


class Agent:
    """An MCP client of one app."""

    def __init__(self, token, endpoint, name="tester"):
        self.url, self.token, self.session, self.number = f"{BASE}/e/{endpoint}/mcp", token, None, 0
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
        self.ask("initialize", client)

    def ask(self, method, params):
        self.number += 1
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json",
                   "Accept": "application/json, text/event-stream"}
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        body = json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        with urllib.request.urlopen(urllib.request.Request(self.url, body.encode(), headers), timeout=120) as response:
            self.session = response.headers.get("Mcp-Session-Id") or self.session
            return response.read().decode()

    def call(self, tool, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})


def watch(endpoint, count):
    """Starts clients that ask for the screen of an app twice a second. Returns a function that ends them and returns their answers."""
    ending, token = threading.Event(), grant("viewers", "registry.read", "endpoint.call")

    def look():
        answers = []
        while not ending.wait(0.5):
            connection = http.client.HTTPConnection("127.0.0.1", 7282, timeout=60)
            connection.request("GET", f"/v1/endpoints/{endpoint}/screen/picture?width=320", headers={"Authorization": f"Bearer {token}"})
            answers.append(connection.getresponse().status)
            connection.close()
        return answers

    viewers = [later(look) for _ in range(count)]

    def end():
        ending.set()
        return [answers() for answers in viewers]
    return end


def request_access(name, scopes=("registry.read",)):
    """Asks for access as an agent does. Returns a function that waits for the token."""
    asked = {"name": name, "permissions": {"scopes": list(scopes), "selector": "all"}}
    status, issued = api("POST", "/v1/access-requests", asked)
    assert status in (200, 201), issued
    poll = {"deviceCode": issued["deviceCode"], "client": "k" * 32, "name": name}

    def answer():
        state = api("POST", "/v1/access-requests/poll", poll)[1]
        return state if state.get("state") != "pending" else None
    return lambda: eventually(answer)
