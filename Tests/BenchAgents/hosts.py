"""The programs of a team on one machine: etcd, brokers, and readers of their events."""
import json
import os
import socket
import subprocess
import threading
import time

import paths
import remote

HERE = "127.0.0.1"


class Etcd:
    """A cluster of etcd with client certificates. A place is an address, and the prefix of commands there."""

    def __init__(self, folder, places):
        self.folder, self.places = folder, places
        self.ports = [(remote.free_port(), remote.free_port()) for _ in places]
        self.urls = [f"https://{address}:{client}" for (address, _), (client, _) in zip(places, self.ports)]
        self.peers = [f"http://{address}:{peer}" for (address, _), (_, peer) in zip(places, self.ports)]
        self.programs = [None] * len(places)

    def start(self, number):
        name, url, peer = f"e{number}", self.urls[number], self.peers[number]
        secure = f"{self.folder}/etcd"
        self.programs[number] = subprocess.Popen(
            [*self.places[number][1], "etcd", "--name", name, "--data-dir", f"{self.folder}/{name}", "--listen-client-urls", url,
             "--advertise-client-urls", url, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
             "--initial-cluster", ",".join(f"e{i}={other}" for i, other in enumerate(self.peers)),
             "--cert-file", f"{secure}/server.pem", "--key-file", f"{secure}/server-key.pem", "--trusted-ca-file", f"{secure}/ca.pem",
             "--client-cert-auth", "--logger", "zap", "--log-outputs", f"{self.folder}/{name}.log"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )

    def kill(self, number):
        self.programs[number].kill()
        self.programs[number].wait()

    def stop(self):
        for program in self.programs:
            if program and program.poll() is None:
                program.kill()
                program.wait()


class Host:
    """A broker of the team in a folder of its own."""

    def __init__(self, built, folder, name, place):
        self.built, self.name = built, name
        self.address, self.prefix = place
        self.folder = f"{folder}/{name}"
        os.mkdir(self.folder)
        self.socket = f"{self.folder}/broker.sock"
        self.port = remote.free_port()
        self.program = None
        self.configuration = f"{self.folder}/patchbay.toml"
        self.write_configuration([])
        self.environment = os.environ | {
            "PATCHBAY_SOCKET": self.socket, "HOME": self.folder, "XDG_STATE_HOME": self.folder,
            "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={self.folder}/no-bus", "USBMUXD_SOCKET_ADDRESS": f"{self.folder}/no-usbmuxd",
        }
        self.environment.pop("PATCHBAY_BROKER", None)

    def write_configuration(self, endpoints):
        lines = [f'[team]\nlisten = "{self.address}:{self.port}"\naddresses = ["{self.address}:{self.port}"]\n']
        lines += [f'[[endpoint]]\nname = "{name}"\naddress = "{HERE}"\nport = {port}\nkind = "mcp"\n' for name, port in endpoints]
        with open(self.configuration, "w") as file:
            file.write("\n".join(lines))

    def start(self):
        log = open(f"{self.folder}/broker.log", "a")
        self.program = subprocess.Popen(
            [*self.prefix, f"{self.built}/patchbayd", "--config", self.configuration, "--state-directory", f"{self.folder}/state"],
            env=self.environment, stdout=log, stderr=log,
        )
        paths.eventually(f"{self.name} answers", lambda: self.get("/health"))

    def restart(self):
        self.stop()
        self.start()

    def stop(self):
        if self.program and self.program.poll() is None:
            self.program.terminate()
            self.program.wait()

    def kill(self):
        self.program.kill()
        self.program.wait()

    def run(self, *words, **options):
        return subprocess.run([f"{self.built}/patchbay", *words], env=self.environment, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE, **options)

    def ask(self, *words, **options):
        done = self.run(*words, **options)
        if done.returncode:
            raise paths.Failure(f"{self.name}: patchbay {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def get(self, target):
        return paths.ask(self.socket, "GET", target)

    def post(self, target, body):
        return paths.ask(self.socket, "POST", target, body)

    def delete(self, target):
        return paths.ask(self.socket, "DELETE", target)

    def endpoints(self):
        return self.get("/v1/endpoints")["endpoints"]

    def resident(self):
        with open(f"/proc/{self.program.pid}/status") as file:
            return next(int(line.split()[1]) * 1024 / 1e6 for line in file if line.startswith("VmRSS"))


class Watcher(threading.Thread):
    """Reads the events of a broker and notes when each endpoint appeared or disappeared first."""

    def __init__(self, host):
        super().__init__(daemon=True)
        self.host = host
        self.seen = {}
        self.condition = threading.Condition()
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(host.socket)
        self.connection.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.start()

    def run(self):
        try:
            with self.connection.makefile("rb") as lines:
                for line in lines:
                    now = time.perf_counter()
                    if line.startswith(b"data: ") and b'"endpoint"' in line:
                        self.note(json.loads(line[6:]), now)
        except OSError:
            pass

    def note(self, event, now):
        endpoint = event.get("endpoint")
        if not isinstance(endpoint, dict):
            return
        key = (endpoint["name"], event.get("kind") == "removed")
        with self.condition:
            self.seen.setdefault(key, now)
            self.condition.notify_all()

    def wait(self, name, removed=False, seconds=30):
        with self.condition:
            if not self.condition.wait_for(lambda: (name, removed) in self.seen, seconds):
                raise paths.Failure(f"{self.host.name} has not seen {name} ({'removed' if removed else 'added'})")
            return self.seen[(name, removed)]

    def close(self):
        self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()


class Team:
    """Hosts that joined one team, with etcd: on loopback, or each host and etcd node in a namespace of the network."""

    def __init__(self, built, folder, size, members, network=None, app=None):
        places = [network.connect(app) if network else (HERE, []) for _ in range(size + members)]
        self.etcd = Etcd(folder, places[size:])
        self.hosts = [Host(built, folder, f"lab{number + 1}", place) for number, place in enumerate(places[:size])]
        self.folder = folder
        self.network = network

    def start(self, endpoints):
        """Makes the team. `endpoints` returns the static endpoints of a host, by its number."""
        first = self.hosts[0]
        for number, host in enumerate(self.hosts):
            host.write_configuration(endpoints(number))
        first.start()
        urls = [word for url in self.etcd.urls for word in ("--etcd", url)]
        create = ["team", "init", "bench", "--host", first.name, "--wait", "0s", *urls]
        first.run(*create)  # Creates the authority, and says that etcd does not answer yet.
        secure = f"{self.folder}/etcd"
        first.ask("team", "certificate", "server", *{address for address, _ in self.etcd.places}, "--out", self.folder)
        os.rename(f"{self.folder}/server", secure)
        for number in range(len(self.etcd.ports)):
            self.etcd.start(number)
        paths.eventually("etcd answers", lambda: first.run(*create).returncode == 0)
        first.restart()
        for host in self.hosts[1:]:
            host.start()
            invite = next(word for word in first.ask("team", "invite").split() if word.startswith("PATCHBAY-TEAM:1:"))
            host.ask("team", "join", "-", "--host", host.name, input=invite)
            host.restart()

    def await_all(self, count):
        for host in self.hosts:
            paths.eventually(f"{host.name} lists {count} endpoints", lambda: len(host.endpoints()) == count)

    def stop(self):
        for host in self.hosts:
            host.stop()
        self.etcd.stop()
        if self.network:
            self.network.stop()
