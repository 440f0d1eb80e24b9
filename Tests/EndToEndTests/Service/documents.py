"""Runs the commands of the fenced shell blocks of README and docs/: documents.py ROOT [DOCUMENT…]

`documents` prepares the machine. Each command that has patchbay, patchbayd or curl is run as written, except for the
placeholder ID. Each line of output is `ran`, `skipped` with a reason, or `failed`. Exits with 1 if a command failed, or if
an exception matches no command any more.
"""

import glob
import json
import os
import re
import select
import signal
import subprocess
import sys

ID = "shop-test-iphone"
# Commands that are not run, by a pattern, with the reason.
SKIPPED = {
    r"^make |^sudo make ": "compiles or changes the machine; DocumentedCommandTests runs the installation of README",
    r"^sudo ": "changes the machine; make e2e-systemd boots one for it",
    r"ssh://|^patchbay watch @ssh": "needs an ssh server; SSHTests has one",
    r"^adb ": "a program of another project; AndroidTests has its server and phones",
    r"^flutter ": "needs Flutter and an app built with it",
    r"^podman ": "needs an image; GrantSocketTests mounts such a socket into a container",
    r"^patchbay team (invite|join|remove)|--etcd-ca ": "needs etcd and other hosts; TeamSetupTests and TeamExistingEtcdTests have them",
    r"[.]lab2|--host lab2|^patchbay usbmux ": "needs another host of a team, or a phone; TeamReachTests and UsbmuxCommandTests have them",
    r"^iproxy |^pymobiledevice3 ": "a program of another project; UsbmuxServerToolTests runs it",
}
# Exit codes other than 0.
EXPECTED = {
    # No grant has the placeholder ID.
    "patchbay activity --html report.html --grant ": {66},
    # Nothing listens on that port of the phone.
    "patchbay profiles check shop-debug.toml --port 8090": {75},
    # The app is no shop-debug server, so the profile is valid and does not fit.
    "patchbay profiles check shop-debug.toml -e ": {1},
}
# Commands that run until Ctrl-C.
LASTING = re.compile(r"^patchbay (watch|advertise |team init |pair(?!.*--detach)|forward (?!.*--detach))")
ASSIGNMENT = re.compile(r"(?:export )?([A-Z_0-9]+)=")
OURS = re.compile(r"(^|[|(] ?)(patchbay|patchbayd|curl)( |$)")


def patchbay(*words, given=None):
    done = subprocess.run(["patchbay", *words], input=given, capture_output=True, text=True, timeout=60)
    if done.returncode:
        sys.exit("patchbay %s: %s" % (" ".join(words), done.stderr))
    return done.stdout


def invite(*options):
    return json.loads(patchbay("pair", "--detach", "--json", *options))


def commands(text):
    """Yields the lines of the fenced shell blocks, without continuations."""
    for block in re.findall(r"^ *```sh\n(.*?)^ *```", text, re.M | re.S):
        for line in block.replace("\\\n", " ").splitlines():
            line = re.sub(r"\s+#\s.*$", "", line.strip())
            if line:
                yield line


class Runner:
    def __init__(self, document, text):
        self.document, self.registration = document, ""
        self.environment = dict(os.environ)
        # curl fails for an HTTP error.
        with open(os.path.expanduser("~/.curlrc"), "w") as file:
            file.write("fail-with-body\nsilent\nshow-error\n")
        self.files(text)
        subprocess.run(["patchbay", "remote", "off"], capture_output=True)
        # Nothing of the document before is left.
        subprocess.run(["patchbay", "revoke", "--all"], capture_output=True)
        subprocess.run(["patchbay", "team", "leave"], capture_output=True)
        for endpoint in json.loads(patchbay("list", "--json"))["endpoints"]:
            if endpoint["sources"] == ["config"]:
                patchbay("rm", endpoint["id"])
        if "\npatchbay remote on" not in text:
            patchbay("remote", "on", "192.168.1.7:7283")
            pin = json.loads(patchbay("remote", "status", "--json"))["pin"]
            device = {"token": invite("--device")["token"], "client": "0123456789abcdefghijklmnop", "name": "phone"}
            redeemed = subprocess.run(
                ["curl", "-k", "-H", "Content-Type: application/json", "-d", json.dumps(device),
                 "https://192.168.1.7:7283/v1/invites/redeem"], capture_output=True, text=True)
            base64 = subprocess.run("printf '%s====' \"$PIN\" | base32 -d | base64", shell=True, text=True,
                                    env=dict(os.environ, PIN=pin), capture_output=True).stdout.strip()
            self.environment.update(PIN=pin, PIN_IN_BASE64=base64, TOKEN=json.loads(redeemed.stdout)["token"])
        local = invite()["pairing"]
        self.environment["GRANT"] = patchbay("join", "--print", "-", given=local).strip()

    def files(self, text):
        """Writes the files that the commands name."""
        with open("patchbay.toml", "w") as file:
            file.write("[api]\nport = 7282\n")
        with open("run-tests.sh", "w") as file:
            file.write("#!/bin/sh\n")
        os.chmod("run-tests.sh", 0o755)
        profile = re.search(r"```toml\n(name = .*?)```", text, re.S)
        if profile:
            with open("shop-debug.toml", "w") as file:
                file.write(profile[1])

    def run(self, line):
        command = line.replace("/registrations/ID", "/registrations/" + self.registration)
        command = re.sub(r"\bID\b", ID, command)
        if "pairing.txt" in command:
            with open("pairing.txt", "w") as file:
                file.write(invite("--bearer")["pairing"] + "\n")
        assignment = ASSIGNMENT.match(command)
        if assignment:
            command += '; printf "%%s" "$%s"' % assignment[1]
        given = None
        if re.match(r"patchbay join -(?!.*<)", command):
            given = invite("--remote")["pairing"] + "\n"
        if LASTING.match(command):
            return self.interrupt(command)
        words = ["bash", "-euc", command]
        if "/v1/registrations" in command:
            words = ["nsenter", "--target", os.environ["NEIGHBOUR"], "--net"] + words
        done = subprocess.run(words, input=given or "", capture_output=True, text=True, timeout=60,
                              env=self.environment)
        if assignment and done.returncode == 0:
            self.environment[assignment[1]] = done.stdout
        if "/v1/registrations" in command and "-d " in command and done.returncode == 0:
            self.registration = json.loads(done.stdout)["id"]
        expected = next((codes for beginning, codes in EXPECTED.items() if command.startswith(beginning)), {0})
        return None if done.returncode in expected else "exit code %d: %s" % (done.returncode, done.stdout + done.stderr)

    def interrupt(self, command):
        """Runs a command until it has printed a line, and ends it with Ctrl-C."""
        process = subprocess.Popen(["bash", "-euc", "exec " + command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, text=True, env=self.environment)
        # Every such command prints where it listens, or what it sees, at once.
        ready = select.select([process.stdout], [], [], 20)[0]
        first = process.stdout.readline() if ready else ""
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=20)[0]
        # A command without a handler ends by the signal itself.
        if ready and first and process.returncode in (0, 130, -signal.SIGINT):
            return None
        return "exit code %d: %s" % (process.returncode, first + rest)


def main():
    root, names = sys.argv[1], sys.argv[2:]
    documents = names or ["README.md"] + sorted(os.path.relpath(path, root) for path in glob.glob(root + "/docs/*.md"))
    failed, used = False, set()
    for document in documents:
        with open(os.path.join(root, document), encoding="utf-8") as file:
            text = file.read()
        runner = None
        for line in commands(text):
            over_ssh = runner and runner.environment.get("PATCHBAY_BROKER", "").startswith("ssh:")
            if re.match(r"export PATCHBAY_BROKER=ssh:", line):
                runner = runner or Runner(document, text)
                runner.environment["PATCHBAY_BROKER"] = "ssh:"
            reason = next((item for item in SKIPPED.items() if re.search(item[0], line + (" @ssh" if over_ssh else ""))), None)
            if reason:
                used.add(reason[0])
                print("skipped %s: %s (%s)" % (document, line, reason[1]), flush=True)
                continue
            if not OURS.search(line) and not ASSIGNMENT.match(line):
                print("failed %s: %s: neither run nor an exception of documents.py" % (document, line), flush=True)
                failed = True
                continue
            runner = runner or Runner(document, text)
            if over_ssh:
                del runner.environment["PATCHBAY_BROKER"]
            problem = runner.run(line)
            failed = failed or problem is not None
            print("ran %s: %s" % (document, line) if problem is None else "failed %s: %s: %s" % (document, line, problem),
                  flush=True)
    stale = [] if names else [pattern for pattern in SKIPPED if pattern not in used]
    if stale:
        sys.exit("failed: these exceptions of documents.py match no command: %s" % stale)
    sys.exit(failed)


if __name__ == "__main__":
    main()
