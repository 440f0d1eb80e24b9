"""A team of three brokers on three etcd servers, with two apps each, and what clients do with it all the time."""
import http.client
import os
import random
import subprocess
import sys
import threading
import time
import types

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../BenchAgents"))
import hosts
from apps import App, Records
from broker import Answer, Broker
from programs import Failure, eventually

HERE = "127.0.0.1"
FAILURES = (Answer, OSError, http.client.HTTPException, ValueError)


class Host(Broker):
    def __init__(self, built, folder, number, apps):
        self.name = f"lab{number + 1}"
        self.api, listen = 7300 + number, f"{HERE}:{7400 + number}"
        lines = [f'[api]\nport = {self.api}\n[discovery]\nenabled = false\n[team]\nlisten = "{listen}"\naddresses = ["{listen}"]']
        lines += [f'[[endpoint]]\nname = "{app.name}"\naddress = "{app.place.address}"\nport = {app.port}\nkind = "mcp"' for app in apps]
        environment = {"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={folder}/none", "USBMUXD_SOCKET_ADDRESS": f"{folder}/none",
                       "ADB_SERVER_SOCKET": f"localfilesystem:{folder}/none"}
        super().__init__(built, f"{folder}/{self.name}", environment, "\n".join(lines) + "\n", f"{folder}/{self.name}.log")
        self.port = self.api

    def command(self, *words, given=None, check=True):
        done = subprocess.run([f"{self.built}/patchbay", *words], env=os.environ | self.environment, input=given, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if check and done.returncode:
            raise Failure(f"{self.name}: patchbay {' '.join(words)}: {done.stdout.strip()}")
        return done.stdout if check else done.returncode


class TeamWorld:
    def __init__(self, built, folder, _):
        self.folder, self.records = folder, Records()
        self.apps = []
        for number in range(6):
            place = types.SimpleNamespace(is_phone=True, is_attached=True, machine=None, address=f"127.66.0.{number + 1}", leases=[])
            app = App(f"com.example.app{number}", "mcp", place, 8000, self.records)
            app.name, app.host = f"app{number}", number // 2
            app.launch()
            self.apps.append(app)
        self.hosts = [Host(built, folder, number, self.apps[2 * number:2 * number + 2]) for number in range(3)]
        self.etcd = hosts.Etcd(folder, [(HERE, [])] * 3)
        first = self.hosts[0]
        urls = [word for url in self.etcd.urls for word in ("--etcd", url)]
        create = ["team", "init", "campaign", "--host", "lab1", "--wait", "0s", *urls]
        first.command(*create, check=False)
        first.command("team", "certificate", "server", HERE, "--out", folder)
        os.rename(f"{folder}/server", f"{folder}/etcd")
        for number in range(3):
            self.etcd.start(number)
        eventually("etcd answers", lambda: first.command(*create, check=False) == 0, 30)
        for host in self.hosts[1:]:
            invite = next(word for word in first.command("team", "invite").split() if word.startswith("PATCHBAY-TEAM:1:"))
            host.command("team", "join", "-", "--host", host.name, given=invite)
        self.grants = [{host.name: host.pair(["registry.read", "endpoint.call"])} for host in self.hosts]

    def id(self, app, host):
        """The ID of an app in the list of a host, by its number."""
        return app.name if app.host == host else f"{app.name}.lab{app.host + 1}"

    def stop(self):
        for app in self.apps:
            app.quit()
        for host in self.hosts:
            host.kill()
        self.etcd.stop()


class TeamTraffic:
    """Calls of owners at each host to apps of all hosts."""

    def __init__(self, world, seed):
        self.world, self.records, self.ended = world, world.records, threading.Event()
        self.calls, self.list_times, self.quiet, self.last = {}, [], [], {}
        self.threads = [threading.Thread(target=self.repeat, args=(host, app, random.Random(f"{seed} {host} {app.name}")), daemon=True)
                        for host in range(3) for app in world.apps]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(40)

    def repeat(self, host, app, choice):
        number = 0
        while not self.ended.is_set():
            number += 1
            label, start = f"{app.bundle}-{host}-{number}-{choice.getrandbits(32):x}", time.monotonic()
            self.calls[label] = call = {"app": app.bundle, "start": start, "end": None, "ok": False}
            try:
                self.call(host, app, label)
                call["ok"], self.last[host, app.name] = True, start
                self.records.count("calls answered")
            except FAILURES:
                self.records.count("calls refused or cut")
            call["end"] = time.monotonic()
            self.ended.wait(choice.uniform(0.5, 1.5))

    def call(self, host, app, label):
        spec = {"tool": "wait", "arguments": {"label": label, "seconds": 0}, "timeoutSeconds": 10}
        result = self.world.hosts[host].request("POST", f"/v1/endpoints/{self.world.id(app, host)}/call", spec)["result"]
        text = str(result)
        if result.get("isError"):
            raise ValueError(text)
        if f'"{app.bundle}"' not in text:
            self.records.violate(f"the call {label} was answered by another app: {text[:200]}")
