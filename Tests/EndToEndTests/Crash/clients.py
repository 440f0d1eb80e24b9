"""Commands that are killed while they write files of their user."""

import json
import os
import signal

from rig import Broker

OTHER = '{\n  // by hand\n  "mcpServers": {\n    "other": {"command": "other"}\n  }\n}\n'
CODEX = '# by hand\nmodel = "o3"\n\n[mcp_servers.other]\ncommand = "other"\n'


def content(rig):
    """All files and folders below the user's folders."""
    found = {}
    for top in (rig.project, f"{rig.live}/home"):
        for folder, _, names in os.walk(top):
            for name in names:
                with open(f"{folder}/{name}", encoding="utf-8") as file:
                    found[os.path.relpath(f"{folder}/{name}", rig.live)] = file.read()
    return found


class ClientScenario:
    """A command with one possible result, which does not need the broker."""

    program = "patchbay"
    words = ()
    files = {}

    @property
    def name(self):
        return type(self).__name__

    def prepare(self, rig):
        for path, text in self.files.items():
            os.makedirs(os.path.dirname(f"{rig.live}/{path}"), exist_ok=True)
            with open(f"{rig.live}/{path}", "w", encoding="utf-8") as file:
                file.write(text)
        self.before = content(rig)
        rig.save()
        rig.restore()
        done = self.command(rig)
        assert done.returncode == 0, done.stderr
        self.after = content(rig)
        assert self.after != self.before
        rig.restore()

    def command(self, rig, environment=None):
        return rig.patchbay(*self.words, environment=environment)

    def run(self, rig, environment):
        return self.command(rig, environment).returncode

    def check(self, rig):
        now, isOver = content(rig), rig.calls()[-1].split()[1] == "exit"
        found = [f"{path} is neither old nor new: {text!r}" for path, text in now.items()
                 if path in self.before | self.after and text not in (self.before.get(path), self.after.get(path))]
        found += [f"{path} is gone" for path in self.before if path not in now]
        if isOver and now != self.after:
            found.append(f"lost, although the command has ended: {now}")
        again = self.command(rig)
        # Nothing is left to do for a command that removes something.
        if again.returncode and now != self.after:
            found.append(f"the command does not work again: {again.stderr}")
        elif content(rig) != self.after:
            found.append(f"another run leaves something else: {sorted(content(rig))}")
        return found


class InstallClaude(ClientScenario):
    words = ("mcp", "install", "claude", "--project")
    files = {"project/.mcp.json": OTHER}


class InstallCursor(ClientScenario):
    words = ("mcp", "install", "cursor")


class InstallCodex(ClientScenario):
    words = ("mcp", "install", "codex")
    files = {"home/.codex/config.toml": CODEX}


class UninstallClaude(ClientScenario):
    words = ("mcp", "uninstall", "claude", "--project")
    files = {"project/.mcp.json": OTHER.replace('"other":', '"patchbay": {"command": "patchbay", "args": ["mcp"]}, "other":')}


class BrokerClientScenario(ClientScenario):
    """A command that asks the broker, which is never killed."""

    def prepare(self, rig):
        pass

    def run(self, rig, environment):
        self.broker = Broker(rig)
        assert self.broker.isOpen, "".join(self.broker.lines)
        self.begin(rig)
        status = self.command(rig, environment).returncode
        if status != -signal.SIGKILL:
            self.broker.stop(signal.SIGKILL)
        return status

    def begin(self, rig):
        pass

    def check(self, rig):
        try:
            return self.violations(rig)
        finally:
            self.broker.stop(signal.SIGKILL)


class Join(BrokerClientScenario):
    def begin(self, rig):
        invite = rig.patchbay("pair", "--detach", "--json")
        assert invite.returncode == 0, invite.stderr
        self.token = json.loads(invite.stdout)["token"]

    def command(self, rig, environment=None):
        return rig.patchbay("join", "-", environment=environment, text=self.token + "\n")

    def violations(self, rig):
        found, isOver = [], rig.calls()[-1].split()[1] == "exit"
        if not isOver:
            again = self.command(rig)
            if again.returncode:
                found.append(f"the invite does not work again: {again.stderr}")
        # After the end of the command, the key of the redemption may be back, because its removal is not synced.
        files = [path for path in content(rig) if not path.endswith(".redemption")]
        if len(files) != 1:
            found.append(f"not one grant is stored: {files}")
        grants = self.broker.ask("GET", "/v1/grants")["grants"]
        if len(grants) != 1:
            found.append(f"{len(grants)} grants of one invite")
        used = rig.patchbay("list", "--broker", rig.socket)
        if used.returncode:
            found.append(f"the grant does not work: {used.stderr}")
        return found


class RemoteCertificate(BrokerClientScenario):
    words = ("remote", "certificate", "--out", "ca.pem")

    def begin(self, rig):
        self.broker.ask("PUT", "/v1/remote", {"enabled": True, "address": "127.0.0.2:7299"})
        with open(f"{rig.project}/ca.pem", "w", encoding="utf-8") as file:
            file.write("old\n")

    def violations(self, rig):
        now, isOver = content(rig).get("project/ca.pem"), rig.calls()[-1].split()[1] == "exit"
        again = self.command(rig)
        names = os.listdir(rig.project)
        with open(f"{rig.project}/ca.pem", encoding="utf-8") as file:
            new = file.read()
        found = [] if now in ("old\n", new) else [f"ca.pem is neither old nor new: {now!r}"]
        if isOver and now != new:
            found.append("lost, although the command has ended")
        if again.returncode or names != ["ca.pem"]:
            found.append(f"another run leaves {names}: {again.stderr}")
        return found


CLIENTS = [InstallClaude, InstallCursor, InstallCodex, UninstallClaude, Join, RemoteCertificate]
