#!/usr/bin/env python3
"""Measures a team of brokers with a real etcd, all on one machine.

  make bench-team ARGS="--hosts 20 --endpoints 25"

Parts (--only NAME): `changes` measures the time from a change at one broker until every other broker shows it. `failures` kills a broker,
the leader of etcd, and the quorum, and measures what the others see. `scale` measures the memory and the first list of a broker with
--many endpoints of other hosts. `streams` compares a stream and a call across two brokers with socat over OpenSSL and with a direct call.
Writes the figures as JSON to --output. Exits with 1 only after a wrong result, not because of a figure.
"""
import argparse
import concurrent.futures
import json
import multiprocessing
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
import paths
import remote
import wire
from hosts import HERE, Team, Watcher
from network import Network


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def static(app, count):
    return lambda number: [(f"App{number}x{index}", app) for index in range(count)]


def measure_changes(options, folder, app):
    team = Team(options.built, folder, options.hosts, 1, options.namespaces and Network(), app)
    try:
        team.start(static(app, options.endpoints))
        team.await_all(options.hosts * options.endpoints)
        watchers = [Watcher(host) for host in team.hosts]
        delays = []
        for number in range(options.changes):
            origin = number % len(team.hosts)
            name = f"Change{number}"
            team.hosts[origin].post("/v1/endpoints", {"name": name, "address": HERE, "port": app, "kind": "mcp"})
            start = watchers[origin].wait(name)
            delays.append(max(watcher.wait(name) for watcher in watchers) - start)
            time.sleep(0.1)
        before = revision(team)
        time.sleep(options.idle)
        idle = revision(team) - before
        for watcher in watchers:
            watcher.close()
        figures = {"hosts": options.hosts, "changes": len(delays), "p50_ms": percentile(delays, 0.5) * 1e3,
                   "p99_ms": percentile(delays, 0.99) * 1e3, "max_ms": max(delays) * 1e3, "idle_revisions": idle,
                   "idle_seconds": options.idle}
        print(f"a change is on all {options.hosts} hosts after {figures['p50_ms']:.1f} ms (p50), {figures['p99_ms']:.1f} ms (p99), "
              f"{figures['max_ms']:.1f} ms (max of {len(delays)}); {idle} writes to etcd in {options.idle} s at rest")
        return figures
    finally:
        team.stop()


def revision(team):
    """Returns the revision of etcd, which each write increments."""
    secure = f"{team.folder}/lab1/state/team"
    done = subprocess.run(
        [*team.etcd.places[0][1], "etcdctl", "--endpoints", team.etcd.urls[0], "--cacert", f"{secure}/ca.pem", "--cert", f"{secure}/host.pem", "--key",
         f"{secure}/host.pem", "get", "/patchbay/v1/meta", "-w", "json"],
        env=os.environ | {"ETCDCTL_API": "3"}, stdout=subprocess.PIPE, check=True,
    )
    return json.loads(done.stdout)["header"]["revision"]


def measure_failures(options, folder, app):
    team = Team(options.built, folder, 3, 3, options.namespaces and Network(), app)
    try:
        team.start(static(app, 5))
        team.await_all(15)
        figures = {}
        # A broker that was killed.
        lost = team.hosts[2]
        ids = {endpoint["id"] for endpoint in team.hosts[0].endpoints() if endpoint["id"].endswith(".lab3")}
        assert len(ids) == 5, ids
        watchers = [Watcher(host) for host in team.hosts[:2]]
        killed = time.perf_counter()
        lost.kill()
        figures["vanished_s"] = max(w.wait(f"App2x{i}", removed=True) for w in watchers for i in range(5)) - killed
        lost.start()
        paths.eventually("the entries reappear", lambda: ids == {
            endpoint["id"] for endpoint in team.hosts[0].endpoints() if endpoint["id"].endswith(".lab3")})
        print(f"entries of a killed broker vanish after {figures['vanished_s']:.2f} s, and reappear with the same IDs")
        # The leader of etcd.
        leader = leader_of(team)
        stop, pauses, added = threading.Event(), [], []

        def write():
            watcher = watchers[1]
            while not stop.is_set():
                name = f"Write{len(added)}"
                start = time.perf_counter()
                team.hosts[0].post("/v1/endpoints", {"name": name, "address": HERE, "port": app, "kind": "mcp"})
                added.append(name)
                pauses.append(watcher.wait(name) - start)

        writer = concurrent.futures.ThreadPoolExecutor(1)
        writing = writer.submit(write)
        time.sleep(3)
        team.etcd.kill(leader)
        time.sleep(10)
        stop.set()
        writing.result()
        figures["leader_pause_s"] = max(pauses)
        names = {endpoint["name"] for endpoint in team.hosts[1].endpoints()}
        figures["leader_lost"] = len(set(added) - names)
        print(f"after the death of etcd's leader a change takes up to {figures['leader_pause_s']:.2f} s; "
              f"{figures['leader_lost']} of {len(added)} changes were lost")
        # The quorum.
        other = next(i for i in range(3) if i != leader)
        team.etcd.kill(other)
        paths.eventually("remote entries are stale", lambda: all(
            endpoint["host"].get("staleSince") for endpoint in team.hosts[0].endpoints() if "." in endpoint["id"]))
        team.hosts[0].post("/v1/endpoints", {"name": "Meanwhile", "address": HERE, "port": app, "kind": "mcp"})
        back = time.perf_counter()
        for number in (leader, other):
            team.etcd.start(number)
        paths.eventually("the change of the meantime arrives", lambda: any(
            endpoint["name"] == "Meanwhile" for endpoint in team.hosts[1].endpoints()))
        paths.eventually("remote entries are current", lambda: not any(
            endpoint["host"].get("staleSince") for endpoint in team.hosts[0].endpoints() if "." in endpoint["id"]))
        figures["recovery_s"] = time.perf_counter() - back
        print(f"without quorum remote entries are stale and local ones work; recovery takes {figures['recovery_s']:.1f} s")
        return figures
    finally:
        team.stop()


def leader_of(team):
    secure = f"{team.folder}/lab1/state/team"
    done = subprocess.run(
        [*team.etcd.places[0][1], "etcdctl", "--endpoints", ",".join(team.etcd.urls), "--cacert", f"{secure}/ca.pem", "--cert", f"{secure}/root.pem", "--key",
         f"{secure}/root.pem", "endpoint", "status", "-w", "json"],
        env=os.environ | {"ETCDCTL_API": "3"}, stdout=subprocess.PIPE, check=True,
    )
    statuses = json.loads(done.stdout)
    leader = statuses[0]["Status"]["leader"]
    return next(i for i, url in enumerate(team.etcd.urls) for status in statuses
                if status["Endpoint"] == url and status["Status"]["header"]["member_id"] == leader)


def measure_scale(options, folder, app):
    publishers = 4
    team = Team(options.built, folder, publishers + 1, 1)
    try:
        each = options.many // publishers
        team.start(lambda number: [] if number == publishers else static(app, each)(number))
        reader = team.hosts[-1]
        total = each * publishers
        paths.eventually("all endpoints are published", lambda: len(reader.endpoints()) == total)
        reader.stop()
        start = time.perf_counter()
        reader.start()
        paths.eventually("the first whole list", lambda: len(reader.endpoints()) == total)
        first = time.perf_counter() - start
        time.sleep(options.idle)
        figures = {"endpoints": total, "first_list_s": first, "resident_mb": reader.resident()}
        print(f"{total} endpoints of other hosts: first whole list {first:.2f} s after the start, {figures['resident_mb']:.0f} MB resident")
        return figures
    finally:
        team.stop()


def measure_streams(options, folder, app):
    listener = socket.create_server((HERE, 0))
    server = multiprocessing.Process(target=remote.serve, args=(listener,))
    server.start()
    direct = listener.getsockname()[1]
    sample = paths.App(folder)
    team = Team(options.built, folder, 2, 1)
    rig = remote.Rig(options.built, folder)
    try:
        team.start(lambda number: [("Bench", direct)] if number == 1 else [])
        near, far = team.hosts
        far.post("/v1/endpoints", {"name": "Sample", "address": HERE, "port": sample.port, "kind": "mcp"})
        paths.eventually("the endpoints are listed", lambda: {"bench.lab2", "sample.lab2"} <= {
            endpoint["id"] for endpoint in near.endpoints()})
        made = near.post("/v1/tunnels", {
            "local": f"tcp:{HERE}:0", "target": {"endpoint": "bench.lab2"}, "noRebind": True, "persistent": False})
        ports = {"socat": rig.socat(direct)[0], "patchbay": int(made["listenAddresses"][0].rsplit(":", 1)[1]), "direct": direct}
        size = options.megabytes << 20
        ratios = {"up": [], "down": []}
        figures = {name: {"up": [], "down": [], "trip": []} for name in ports}
        for number in range(options.rounds):
            for name in (list(ports) if number % 2 else list(reversed(ports))):
                figures[name]["up"].append(remote.up(ports[name], size))
                figures[name]["down"].append(remote.down(ports[name], size))
                figures[name]["trip"].append(statistics.median(remote.trips(ports[name], 500)))
        for key in ratios:
            ratios[key] = statistics.median(
                ours / theirs for ours, theirs in zip(figures["patchbay"][key], figures["socat"][key]))
            rates = {name: statistics.median(figures[name][key]) / 1e6 for name in ports}
            print(f"{key}: patchbay {rates['patchbay']:.0f}, socat {rates['socat']:.0f}, direct {rates['direct']:.0f} MB/s; "
                  f"patchbay / socat {ratios[key]:.2f}")
        # A call at the owning broker, and the same call through the other one.
        body = {"tool": "launch_context", "arguments": {}}
        times = {"far": [], "near": []}
        clients = {"far": (far, "sample"), "near": (near, "sample.lab2")}
        connections = {key: wire.Connection(host.socket) for key, (host, _) in clients.items()}
        for number in range(options.calls + 20):
            for key, (host, endpoint) in clients.items():
                start = time.perf_counter()
                connections[key].request("POST", f"/v1/endpoints/{endpoint}/call", json.dumps(body), {"Content-Type": "application/json"})
                response = connections[key].getresponse()
                text = response.read()
                if response.status != 200:
                    raise paths.Failure(f"{key}: {response.status} {text[:300]}")
                if number >= 20:
                    times[key].append(time.perf_counter() - start)
        added = (percentile(times["near"], 0.5) - percentile(times["far"], 0.5)) * 1e3
        print(f"a call: {percentile(times['far'], 0.5) * 1e3:.2f} ms at the owning broker, {percentile(times['near'], 0.5) * 1e3:.2f} ms "
              f"across two brokers; added {added:.2f} ms (p50)")
        return {"ratios": ratios, "added_call_ms": added, "figures": figures}
    finally:
        rig.stop()
        team.stop()
        sample.stop()
        server.terminate()


def accept(listener):
    while True:
        listener.accept()[0].close()


PARTS = {"changes": measure_changes, "failures": measure_failures, "scale": measure_scale, "streams": measure_streams}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", required=True, help="the folder of patchbay and patchbayd")
    parser.add_argument("--only", choices=list(PARTS), action="append")
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--endpoints", type=int, default=25)
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--many", type=int, default=10_000)
    parser.add_argument("--idle", type=int, default=30, help="seconds at rest")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--namespaces", action="store_true",
                        help="give each host of `changes` and `failures`, and each etcd node, a network namespace (root)")
    parser.add_argument("--output")
    options = parser.parse_args()
    options.built = os.path.abspath(options.built)
    listener = socket.create_server((HERE, 0), backlog=1024)
    app = multiprocessing.Process(target=accept, args=(listener,))
    app.start()
    figures = {}
    try:
        for name in options.only or PARTS:
            with tempfile.TemporaryDirectory() as folder:
                figures[name] = PARTS[name](options, folder, listener.getsockname()[1])
    except paths.Failure as failure:
        sys.exit(f"failed: {failure}")
    finally:
        app.terminate()
    if options.output:
        with open(options.output, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
