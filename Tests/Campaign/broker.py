"""The broker, its API and its footprint."""
import contextlib
import http.client
import json
import os
import socket
import time

from programs import Program


class Unix(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer(Exception):
    """A response that is not a success."""

    def __init__(self, status, body):
        super().__init__(f"{status} {body}")
        self.status, self.body = status, body


class Broker:
    """A patchbayd with its state on a small file system of its own."""

    def __init__(self, built, folder, environment, configuration, log):
        self.built, self.folder, self.log, self.starts = built, folder, log, 0
        self.socket, self.port, self.state = f"{folder}/broker.sock", 7282, f"{folder}/state"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/patchbay.toml", "w") as file:
            file.write(configuration)
        self.environment = environment | {"PATCHBAY_SOCKET": self.socket, "HOME": folder}
        self.ended = []
        self.start()

    def start(self):
        words = (f"{self.built}/patchbayd", "--config", f"{self.folder}/patchbay.toml", "--state-directory", self.state)
        self.program = Program(*words, environment=self.environment, log=self.log)
        self.program.await_line("the API is open", limit=20)
        self.starts += 1

    def kill(self):
        self.ended.append(time.monotonic())
        self.program.kill()

    def stop(self):
        self.ended.append(time.monotonic())
        return self.program.stop(10)

    def request(self, method, path, document=None, token=None, timeout=20):
        """Sends a request as the owner, or over TCP with the token of a grant. Returns the JSON of a success."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout) if token else Unix(self.socket, timeout)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if document is not None:
            headers["Content-Type"] = "application/json"
        with contextlib.closing(connection):
            connection.request(method, path, None if document is None else json.dumps(document), headers)
            response = connection.getresponse()
            body = response.read()
        if response.status >= 300:
            raise Answer(response.status, body.decode(errors="replace")[:300])
        return json.loads(body) if body else None

    def endpoints(self):
        return self.request("GET", "/v1/endpoints")["endpoints"]

    def pair(self, scopes, selector="all"):
        """Creates a grant. Returns its ID and its token."""
        spec = {"permissions": {"scopes": scopes, "selector": selector}, "maxUses": 1, "lifetimeSeconds": 600}
        token = self.request("POST", "/v1/invites", spec)["token"]
        issued = self.request("POST", "/v1/invites/redeem", {"token": token, "client": os.urandom(16).hex(), "name": "agent"})
        return issued["grant"]["id"], issued["token"]

    def forward(self, target):
        tunnel = self.request("POST", "/v1/tunnels", {"local": "tcp:0", "target": target, "noRebind": False, "persistent": True})
        addresses = [address for address in tunnel["listenAddresses"] if address.startswith("tcp:127.")]
        return tunnel["id"], int(addresses[0].rsplit(":", 1)[1])

    def audit(self):
        """Returns the events of the whole log."""
        events, after = [], 0
        while lines := self.request("GET", f"/v1/audit?after={after}&limit=1000")["lines"]:
            entries = [json.loads(line) for line in lines]
            events += [entry["event"] for entry in entries]
            if entries[-1]["number"] <= after:
                break
            after = entries[-1]["number"]
        return events

    def footprint(self):
        """Returns descriptors, threads and resident KiB."""
        proc = f"/proc/{self.program.pid}"
        try:
            with open(f"{proc}/status") as file:
                fields = dict(line.split(":", 1) for line in file if ":" in line)
            return len(os.listdir(f"{proc}/fd")), int(fields["Threads"]), int(fields["VmRSS"].split()[0])
        except (OSError, KeyError):
            return None
