"""What is done while the program is killed, and what has to hold afterwards."""

import collections
import json
import os
import signal

from rig import Broker, Died

PERMISSIONS = {"scopes": ["registry.read"], "selector": "all"}
# The messages at the next start that a kill may cause.
EXPECTED = ("the last line of audit.jsonl was incomplete after a crash and was removed",)


def endpoint(name, port):
    return {"name": name, "kind": "appreveal", "address": "127.0.0.1", "port": port, "app": f"com.example.{name.lower()}"}


def paired(broker, key):
    token = broker.ask("POST", "/v1/invites", {"permissions": PERMISSIONS})["token"]
    return broker.ask("POST", "/v1/invites/redeem", {"token": token, "client": key * 30, "name": key})


class Step:
    """A change: what it was told, and whether it was acknowledged, in flight, or not begun."""

    def __init__(self, name, act, holds):
        self.name, self.act, self.holds = name, act, holds
        self.outcome, self.answer = "not begun", None


class BrokerScenario:
    program = "patchbayd"

    @property
    def name(self):
        return type(self).__name__

    def run(self, rig, environment):
        """Runs the steps until the broker dies; returns its status."""
        self.chosen = self.steps()
        broker = Broker(rig, environment)
        if broker.isOpen:
            try:
                for step in self.chosen:
                    step.outcome = "in flight"
                    step.answer = step.act(broker)
                    step.outcome = "acknowledged"
            except Died:
                pass
            broker.stop()
        else:
            broker.stop(0)
        return broker.process.returncode

    def check(self, rig):
        broker = Broker(rig)
        try:
            return self.violations(rig, broker)
        finally:
            broker.stop(signal.SIGKILL)

    def violations(self, rig, broker):
        log = "".join(broker.lines)
        if not broker.isOpen:
            return [f"the broker does not start: {log}"]
        found = [line.strip() for line in broker.lines if " error " in line and not any(text in line for text in EXPECTED)]
        found += [f"{name} was set aside" for name in os.listdir(rig.state) if "unreadable" in name or "damaged" in name]
        invalid = broker.ask("GET", "/v1/audit/verify").get("firstInvalidEntry")
        if invalid:
            found.append(f"the audit log is invalid: {invalid}")
        now = State(broker)
        for step in self.chosen:
            holds = step.holds(now, step.answer)
            if step.outcome == "acknowledged" and not holds:
                found.append(f"lost, although acknowledged: {step.name}")
            if step.outcome == "not begun" and holds:
                found.append(f"there, although never begun: {step.name}")
        redeemed = collections.Counter(event["grant"] for event in now.audit if event["action"] == "redeemed")
        if redeemed != collections.Counter(each["id"] for each in now.grants.values()):
            found.append("the audit log has other grants than the database")
        found += self.kept(now)
        # The broker works: it writes, and a second restart has what it wrote.
        paired(broker, "z")
        return found

    def kept(self, now):
        return []


class State:
    """What the broker lists."""

    def __init__(self, broker):
        self.broker = broker
        self.endpoints = {each["name"]: each for each in broker.ask("GET", "/v1/endpoints")["endpoints"]}
        self.tunnels = {address: each for each in broker.ask("GET", "/v1/tunnels")["tunnels"]
                        for address in each["listenAddresses"]}
        self.grants = {each["name"]: each for each in broker.ask("GET", "/v1/grants")["grants"]}
        self.invites = {each["id"] for each in broker.ask("GET", "/v1/invites")["invites"]}
        self.remote = broker.ask("GET", "/v1/remote")
        self.audit = [json.loads(line)["event"] for line in broker.ask("GET", "/v1/audit?after=0&limit=1000")["lines"]]

    def isGranted(self, name):
        return name in self.grants and not self.grants[name].get("endReason")

    def lists(self, answer):
        """True if an endpoint is listed under the ID that it was given."""
        return any(each["id"] == answer["id"] for each in self.endpoints.values())


class FirstStart(BrokerScenario):
    """A broker without any state, until it has given its first grant."""

    def prepare(self, rig):
        pass

    def steps(self):
        return [Step("the first grant", lambda broker: paired(broker, "a"), lambda now, _: now.isGranted("a"))]


class Changes(BrokerScenario):
    """One change of each kind, at a broker with a state."""

    def prepare(self, rig):
        broker = Broker(rig)
        assert broker.isOpen, "".join(broker.lines)
        for key in ("kept", "doomed"):
            paired(broker, key)
        for name, port in (("Kept", 9), ("Doomed", 10)):
            broker.ask("POST", "/v1/endpoints", endpoint(name, port))
        self.ids = {each["name"]: each["id"] for each in broker.ask("GET", "/v1/endpoints")["endpoints"]}
        self.doomed = {each["name"]: each["id"] for each in broker.ask("GET", "/v1/grants")["grants"]}["doomed"]
        broker.ask("PUT", f"/v1/endpoints/{self.ids['Kept']}/secret", {"secret": "of-kept"})
        opened = [broker.ask("POST", "/v1/tunnels", self.tunnel("Kept")) for _ in range(2)]
        self.tunnels = [each["listenAddresses"][0] for each in opened]
        self.closed = opened[1]["id"]
        broker.stop()

    def tunnel(self, name):
        return {"local": "tcp:127.0.0.1:0", "target": {"endpoint": self.ids[name]}, "noRebind": True, "persistent": True}

    def steps(self):
        kept = self.ids["Kept"]
        return [
            Step("an invite", lambda broker: broker.ask("POST", "/v1/invites", {"permissions": PERMISSIONS})["invite"]["id"],
                 lambda now, answer: answer in now.invites),
            Step("a grant", lambda broker: paired(broker, "new"), lambda now, _: now.isGranted("new")),
            Step("a revocation", lambda broker: broker.ask("DELETE", f"/v1/grants/{self.doomed}"),
                 lambda now, _: not now.isGranted("doomed")),
            Step("an endpoint", lambda broker: broker.ask("POST", "/v1/endpoints", endpoint("New", 11)),
                 lambda now, answer: now.lists(answer) if answer else "New" in now.endpoints),
            Step("an endpoint whose name gives the ID of another", lambda broker: broker.ask("POST", "/v1/endpoints", self.twin()),
                 lambda now, answer: bool(answer) and now.lists(answer)),
            Step("the end of a secret", lambda broker: broker.ask("DELETE", f"/v1/endpoints/{kept}/secret"),
                 lambda now, _: not now.endpoints["Kept"]["routes"][0].get("secretHeld")),
            Step("a tunnel", lambda broker: broker.ask("POST", "/v1/tunnels", self.tunnel("Kept"))["listenAddresses"][0],
                 lambda now, answer: answer in now.tunnels),
            Step("the end of a tunnel", lambda broker: broker.ask("DELETE", f"/v1/tunnels/{self.closed}"),
                 lambda now, _: self.tunnels[1] not in now.tunnels),
            Step("the remote listener", lambda broker: broker.ask("PUT", "/v1/remote", self.remote()),
                 lambda now, answer: now.remote["state"] != "off" and (not answer or now.remote["pin"] == answer["pin"])),
            Step("the end of an endpoint", lambda broker: broker.ask("DELETE", f"/v1/endpoints/{self.ids['Doomed']}"),
                 lambda now, _: "Doomed" not in now.endpoints)]

    @staticmethod
    def twin():
        return endpoint("KEPT", 12)

    @staticmethod
    def remote():
        return {"enabled": True, "address": "127.0.0.2:7299"}

    def kept(self, now):
        found = [] if now.isGranted("kept") else ["a grant of before is gone"]
        if not now.lists({"id": self.ids["Kept"]}):
            found.append("an endpoint of before is gone, or has another ID")
        if self.tunnels[0] not in now.tunnels:
            found.append("a tunnel of before is gone, or has another address")
        return found


BROKERS = [FirstStart, Changes]
