"""The paths to one app: directly, through Patchbay, and through other proxies."""
import base64
import http.client
import json
import os
import re
import secrets
import subprocess
import sys
import time

import crowd
import wire

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)


class Failure(Exception):
    pass


def python(library):
    """Returns a Python with the library, which is installed if it is missing."""
    script = os.path.join(TESTS, "EndToEndTests/Agents/environment")
    made = subprocess.run(["sh", script, library], stdout=subprocess.PIPE, text=True)
    if made.returncode:
        raise Failure("%s could not be installed" % library)
    return made.stdout.split()[-1]


def free_port():
    import socket
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def eventually(what, check, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            value = check()
            if value:
                return value
        except (OSError, http.client.HTTPException, ValueError, KeyError):
            pass
        time.sleep(0.1)
    raise Failure("%s within %d s" % (what, seconds))


def ask(address, method, target, body=None, headers=None):
    """Sends one JSON request."""
    connection = wire.Connection(address)
    try:
        connection.request(method, target, None if body is None else json.dumps(body),
                           {"Content-Type": "application/json", **(headers or {})})
        response = connection.getresponse()
        text = response.read()
    finally:
        connection.close()
    if response.status >= 300:
        raise Failure("%s %s: status %d, %s" % (method, target, response.status, text[:300].decode(errors="replace")))
    return json.loads(text) if text else None


class App:
    """The sample app with an even response time."""

    def __init__(self, work):
        self.log = open(os.path.join(work, "app.log"), "w+")
        self.process = subprocess.Popen([sys.executable, os.path.join(TESTS, "TestSupport/sampleapp.py"), "--sequential"], stdout=self.log,
                                        stderr=subprocess.STDOUT)
        self.port = int(eventually("the sample app says no port", self.line))

    def line(self):
        self.log.seek(0)
        found = re.search(r"listening on (\d+)", self.log.read())
        return found and found.group(1)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Path:
    tool = "launch_context"
    headers = {}
    target = "/mcp"
    process = None

    def processes(self):
        """Returns the process and all its descendants."""
        if self.process is None:
            return []
        found, todo = [], [self.process.pid]
        while todo:
            pid = todo.pop()
            found.append(pid)
            try:
                for thread in os.listdir("/proc/%d/task" % pid):
                    with open("/proc/%d/task/%s/children" % (pid, thread)) as children:
                        todo += [int(child) for child in children.read().split()]
            except OSError:
                pass
        return found

    def processor_seconds(self):
        total = 0
        for pid in self.processes():
            try:
                with open("/proc/%d/stat" % pid) as stat:
                    fields = stat.read().rpartition(")")[2].split()
                total += int(fields[11]) + int(fields[12])
            except OSError:
                pass
        return total / os.sysconf("SC_CLK_TCK")

    def memory(self):
        """Megabytes: what is resident, what of that no file has, and its share where others have it too."""
        totals = {"VmRSS": 0, "RssAnon": 0, "Pss": 0}
        for pid in self.processes():
            for file in ("status", "smaps_rollup"):
                try:
                    with open("/proc/%d/%s" % (pid, file)) as text:
                        for name, kibibytes in re.findall(r"^(\w+):\s+(\d+) kB", text.read(), re.M):
                            if name in totals:
                                totals[name] += int(kibibytes) * 1024 / 1e6
                except OSError:
                    pass
        return totals if totals["VmRSS"] else None

    def start(self):
        pass

    def extra(self):
        """What else is measured: figures by name."""
        return {}

    def stop(self):
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def spawn(self, words, work, environment=None):
        log = open(os.path.join(work, self.name.split()[0] + ".log"), "w")
        self.process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})})


class Direct(Path):
    name = "direct"

    def __init__(self, app):
        self.address = ("127.0.0.1", app.port)


class Patchbay(Path):
    """Over TCP, with a grant, at the app's own address."""
    name = "patchbay"
    endpoint = "Bench"
    configuration = ""

    def __init__(self, app, work, options):
        work = os.path.join(work, self.name.replace(", ", "-"))
        os.mkdir(work)
        self.app, self.work, self.options = app, work, options
        self.built = options.built
        self.socket = os.path.join(work, "patchbay.sock")
        self.port = free_port()
        self.address = ("127.0.0.1", self.port)

    def start(self):
        config = os.path.join(self.work, "patchbay.toml")
        with open(config, "w") as file:
            file.write('[broker]\nlog_level = "warning"\n[api]\nport = %d\n[discovery]\nenabled = false\n'
                       "[devices]\nenabled = false\n%s" % (self.port, self.configuration))
        program = os.path.join(self.built, "patchbayd")
        if not os.path.exists(program):
            raise Failure("%s is not there: make build" % program)
        self.spawn([program, "--config", config, "--socket", self.socket, "--state-directory", os.path.join(self.work, "state")],
                   self.work)
        eventually("patchbayd does not answer", lambda: ask(self.socket, "GET", "/health") is not None, 20)
        endpoint = self.add(self.endpoint, self.app.port)
        self.target = "/e/%s/mcp" % endpoint
        permissions = {"scopes": ["registry.read", "endpoint.call"], "selector": "all"}
        invite = ask(self.socket, "POST", "/v1/invites", {"permissions": permissions})
        grant = ask(self.socket, "POST", "/v1/invites/redeem",
                    {"token": invite["token"], "client": secrets.token_hex(16), "name": "bench"})
        self.headers = {"Authorization": "Bearer " + grant["token"]}

    def add(self, name, port):
        return ask(self.socket, "POST", "/v1/endpoints",
                   {"name": name, "kind": "appreveal", "address": "127.0.0.1", "port": port})["id"]

    def extra(self):
        """What the broker's memory comes to with many endpoints, each asked for its tools."""
        apps = crowd.Crowd(self.options.endpoints - 1)
        try:
            for number, port in enumerate(apps.ports):
                endpoint = self.add("App %d" % number, port)
                tools = ask(self.socket, "GET", "/v1/endpoints/%s/tools" % endpoint)["tools"]
                if len(tools) != len(crowd.TOOLS):
                    raise Failure("%s has %d tools" % (endpoint, len(tools)))
            count = len(ask(self.socket, "GET", "/v1/endpoints")["endpoints"])
            # It goes on working a little: what it was told is written down.
            time.sleep(3)
            memory = self.memory()
        finally:
            apps.stop()
        print("patchbay with %d endpoints, each with %d tools: %.1f MB resident, of which %.1f MB are no file's; %.1f MB by its share"
              % (count, len(crowd.TOOLS), memory["VmRSS"], memory["RssAnon"], memory["Pss"]))
        return {"endpoints": count, "memory": memory}


class PatchbaySocket(Patchbay):
    """Over the unix socket, as `patchbay mcp` does."""
    name = "patchbay, socket"

    def __init__(self, app, work, options):
        super().__init__(app, work, options)
        self.address = self.socket

    def start(self):
        super().start()
        self.headers = {}

    def extra(self):
        """How long an agent's client waits for `patchbay mcp`, from its start to the first answer."""
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}}
        times = []
        for _ in range(20):
            start = time.perf_counter()
            shim = subprocess.Popen([os.path.join(self.built, "patchbay"), "mcp", "--socket", self.socket],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            shim.stdin.write(json.dumps(hello).encode() + b"\n")
            shim.stdin.flush()
            shim.stdout.readline()
            times.append(time.perf_counter() - start)
            shim.stdin.close()
            shim.wait()
        times.sort()
        milliseconds = {"p50": times[len(times) // 2] * 1e3, "slowest": times[-1] * 1e3}
        print("patchbay mcp, start to first answer: p50 %.0f ms, slowest of %d %.0f ms" % (
            milliseconds["p50"], len(times), milliseconds["slowest"]))
        return {"first answer of patchbay mcp": milliseconds}


class Earlier:
    """What an earlier build has in place of this one's."""

    def __init__(self, app, work, options):
        super().__init__(app, work, options)
        self.built = options.before

    def extra(self):
        return {}


class Before(Earlier, Patchbay):
    name = "before"


class BeforeSocket(Earlier, PatchbaySocket):
    name = "before, socket"


class FastMCPProxy(Path):
    name = "fastmcp proxy"

    def __init__(self, app, work, options):
        self.app, self.work = app, work
        self.address = ("127.0.0.1", free_port())

    def start(self):
        self.spawn([python("fastmcp-4"), os.path.join(HERE, "fastmcp_proxy.py"), "http://127.0.0.1:%d/mcp" % self.app.port,
                    str(self.address[1])], self.work)
        eventually("FastMCP's proxy does not answer", lambda: wire.Client(self).open() is None)


class ContextForge(Path):
    name = "contextforge"
    tool = "app-launch-context"
    target = "/mcp/"

    def __init__(self, app, work, options):
        self.app, self.work = app, work
        self.address = ("127.0.0.1", free_port())

    def start(self):
        # Without authentication, limits and plugins, which would all cost time; it insists on good secrets.
        names = ["JWT_SECRET_KEY", "AUTH_ENCRYPTION_SECRET", "BASIC_AUTH_PASSWORD", "PLATFORM_ADMIN_PASSWORD",
                 "DEFAULT_USER_PASSWORD"]
        drawn = {name: "Aa1-" + base64.urlsafe_b64encode(secrets.token_bytes(48)).decode() for name in names}
        program = os.path.join(os.path.dirname(python("contextforge")), "mcpgateway")
        self.spawn([program, "--host", "127.0.0.1", "--port", str(self.address[1])], self.work, drawn | {
            "DATABASE_URL": "sqlite:///%s/contextforge.db" % self.work, "AUTH_REQUIRED": "false", "MCP_REQUIRE_AUTH": "false",
            "ALLOW_UNAUTHENTICATED_ADMIN": "true", "MCPGATEWAY_UI_ENABLED": "false", "RATE_LIMITING_ENABLED": "false",
            "TOOL_RATE_LIMIT": "1000000", "SSRF_PROTECTION_ENABLED": "false", "PLUGINS_ENABLED": "false", "LOG_LEVEL": "ERROR",
            "CACHE_TYPE": "memory", "ENVIRONMENT": "development"})
        eventually("ContextForge does not answer", lambda: ask(self.address, "GET", "/health") is not None)
        ask(self.address, "POST", "/gateways", {
            "name": "app", "url": "http://127.0.0.1:%d/mcp" % self.app.port, "transport": "STREAMABLEHTTP"})
        eventually("ContextForge lists no tools", lambda: ask(self.address, "GET", "/tools"))
