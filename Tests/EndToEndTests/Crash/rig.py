"""The real programs in a folder of their own, with the library that kills one of them at a system call."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess

MODES = ("kill", "short", "power", "torn")


class Died(Exception):
    """The broker ended during a request."""


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


class Rig:
    """Everything is below `live`, which each run gets as a copy of `base`, because files hold absolute paths."""

    def __init__(self, programs, library, folder):
        self.programs, self.library, self.folder = programs, library, folder
        self.live, self.base = f"{folder}/live", f"{folder}/base"
        self.log, self.keep = f"{folder}/calls", f"{folder}/keep"
        self.state, self.socket, self.project = f"{self.live}/state", f"{self.live}/s", f"{self.live}/project"
        self.environment = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ} | {
            "PATCHBAY_SOCKET": self.socket, "HOME": f"{self.live}/home", "XDG_STATE_HOME": f"{self.live}/home/state",
            "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={folder}/no-bus", "USBMUXD_SOCKET_ADDRESS": f"{folder}/no-usbmuxd",
            "ADB_SERVER_SOCKET": f"localfilesystem:{folder}/no-adb", "SWIFT_BACKTRACE": "enable=no"}

    def clear(self):
        shutil.rmtree(self.live, ignore_errors=True)
        for path in (self.project, f"{self.live}/home"):
            os.makedirs(path)
        with open(f"{self.live}/patchbay.toml", "w", encoding="utf-8") as file:
            file.write("[api]\ntcp = false\n")

    def save(self):
        shutil.rmtree(self.base, ignore_errors=True)
        shutil.copytree(self.live, self.base, symlinks=True, ignore=lambda _, names: [n for n in names if n == "s"])

    def restore(self):
        for path in (self.live, self.keep):
            shutil.rmtree(path, ignore_errors=True)
        os.mkdir(self.keep)
        shutil.copytree(self.base, self.live, symlinks=True)

    def cut(self, program, number, mode):
        """The environment in which a program counts its calls and ends at one of them; 0 is none."""
        if os.path.exists(self.log):
            os.unlink(self.log)
        return self.environment | {
            "LD_PRELOAD": self.library, "CUT_PROGRAM": program, "CUT_FOLDER": self.live, "CUT_LOG": self.log,
            "CUT_AT": str(number), "CUT_MODE": mode, "CUT_KEEP": self.keep}

    def calls(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read().splitlines()

    def patchbay(self, *words, environment=None, text=None):
        return subprocess.run([f"{self.programs}/patchbay", *words], env=environment or self.environment, cwd=self.project,
                              input=text or "", capture_output=True, text=True, timeout=60)


class Broker:
    def __init__(self, rig, environment=None):
        self.rig, self.lines, self.tokens = rig, [], {}
        self.process = subprocess.Popen(
            [f"{rig.programs}/patchbayd", "--state-directory", rig.state, "--config", f"{rig.live}/patchbay.toml"],
            env=environment or rig.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, start_new_session=True)
        for line in self.process.stderr:
            self.lines.append(line)
            if "the API is open" in line:
                return
        self.process.wait()

    @property
    def isOpen(self):
        return bool(self.lines) and "the API is open" in self.lines[-1]

    def ask(self, method, path, body=None, token=None):
        """The answer to a request, or Died. Any other status than success is an error."""
        connection = UnixConnection(self.rig.socket)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Died(f"{method} {path}: {error!r}") from error
        finally:
            connection.close()
        assert response.status < 300, f"{method} {path}: {response.status} {data.decode()}"
        return json.loads(data) if data else None

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.lines += self.process.stderr.readlines()
        self.process.wait()
        self.process.stderr.close()
