#!/usr/bin/env python3
"""Compares the cost of a call through Patchbay with a direct call and with other MCP proxies, on one machine.

  make bench-agents ARGS="--rounds 5 --calls 200"

Every path leads to the same sample app, which behaves like AppReveal, and is called by the same client: one call at a time, over
a persistent connection if the server keeps it open. The paths take turns, so that other load affects all of them. Other proxies are
installed from PyPI at the first run; --only NAME leaves the others out. --before FOLDER also measures an earlier build. Prints the
time added to a direct call, the ratio for the other proxies, and the broker's memory with many endpoints; writes the same as JSON
to --output. Takes 3 min after the installation. Exits with 1 only after a wrong response, not because of a figure.
"""
import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import paths
import wire

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = (paths.Patchbay, paths.PatchbaySocket)
EARLIER = (paths.Before, paths.BeforeSocket)
RIVALS = (paths.FastMCPProxy, paths.ContextForge)


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def measure(path, client, calls):
    """Returns the seconds of each call; a failed call is an error."""
    # The server may have closed the connection since the last round.
    client.connection.close()
    client.call(path.tool)
    before = path.processor_seconds()
    times = [client.call(path.tool) for _ in range(calls)]
    return times, path.processor_seconds() - before


class Result:
    def __init__(self):
        self.times = []
        self.processor = 0.0
        self.memory = None

    def figures(self, direct):
        """Returns milliseconds and megabytes."""
        found = {"calls": len(self.times)}
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            found[name] = percentile(self.times, share) * 1e3
            if self is not direct:
                found["added " + name] = found[name] - percentile(direct.times, share) * 1e3
        if self.memory:
            found |= {"processor": self.processor / len(self.times) * 1e3, "memory": self.memory}
        return found


def table(figures):
    print("\n%-22s %9s %9s %11s %11s %11s %11s" % ("", "p50", "p99", "added p50", "added p99", "CPU/call", "resident"))
    for name, found in figures.items():
        added = ["%+.2f ms" % found["added " + key] if "added " + key in found else "" for key in ("p50", "p99")]
        processor = "%.2f ms" % found["processor"] if "processor" in found else ""
        resident = "%.1f MB" % found["memory"]["VmRSS"] if "memory" in found else ""
        print("%-22s %6.2f ms %6.2f ms %11s %11s %11s %11s" % (name, found["p50"], found["p99"], *added, processor, resident))
    print()
    for rival in (kind.name for kind in RIVALS if kind.name in figures):
        for ours in (kind.name for kind in OURS if kind.name in figures):
            print("%s adds %.0f times as much as %s (p50)" % (rival, ratio(figures, rival, ours), ours))
    for ours, earlier in ((ours.name, earlier.name) for ours, earlier in zip(OURS, EARLIER)):
        if ours in figures and earlier in figures:
            now, then = figures[ours], figures[earlier]
            print("%s: p50 %.2f and CPU %.2f times those of the earlier build" % (
                ours, now["p50"] / then["p50"], now["processor"] / then["processor"]))


def ratio(figures, rival, ours):
    # An immeasurably short time counts as 1 µs.
    return figures[rival]["added p50"] / max(figures[ours]["added p50"], 0.001)


def run(options, work):
    """Returns all measurements for the JSON record."""
    load = os.getloadavg()
    app = paths.App(work)
    chosen = [paths.Direct(app)]
    results = {}
    try:
        for kind in OURS + (EARLIER if options.before else ()) + RIVALS:
            if options.only and kind.name not in options.only and kind not in EARLIER:
                continue
            print("starting", kind.name, "…", flush=True)
            path = kind(app, work, options)
            chosen.append(path)
            path.start()
        clients = {path.name: wire.Client(path) for path in chosen}
        for path in chosen:
            results[path.name] = Result()
            clients[path.name].open()
            # Warm-up: the first calls fill caches and pools.
            measure(path, clients[path.name], 20)
        for number in range(options.rounds):
            print("round %d of %d, load %.2f" % (number + 1, options.rounds, os.getloadavg()[0]), flush=True)
            for path in chosen:
                times, processor = measure(path, clients[path.name], options.calls)
                results[path.name].times += times
                results[path.name].processor += processor
        for path in chosen:
            results[path.name].memory = path.memory()
        figures = {name: result.figures(results["direct"]) for name, result in results.items()}
        table(figures)
        for path in chosen:
            figures[path.name] |= path.extra()
        ended = os.getloadavg()
        print("\n%d calls of each, %d at a time; load %.2f when it began, %.2f at the end; %d cores, Linux %s" % (
            options.rounds * options.calls, options.calls, load[0], ended[0], os.cpu_count(), platform.release()))
        return {
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "cores": os.cpu_count(), "kernel": platform.release(),
            "load": {"began": load, "ended": ended}, "rounds": options.rounds, "calls": options.calls, "paths": figures}
    finally:
        for path in reversed(chosen):
            path.stop()
        app.stop()


def save(record, folder):
    os.makedirs(folder, exist_ok=True)
    file = os.path.join(folder, "agents-%s.json" % record["date"].replace(":", "").replace("-", ""))
    with open(file, "w") as output:
        json.dump(record, output, indent=2, sort_keys=True)
    print("kept in", os.path.relpath(file))


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--built", default=os.path.join(HERE, "../../.build/release"), help="where patchbayd and patchbay are")
parser.add_argument("--before", help="where patchbayd of an earlier build is")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--calls", type=int, default=200, help="calls of each path in each round")
parser.add_argument("--only", action="append", choices=[kind.name for kind in OURS + RIVALS],
                    help="measure this path beside the direct one; may be given several times")
parser.add_argument("--endpoints", type=int, default=100, help="how many the broker has when its memory is measured")
parser.add_argument("--output", default=os.path.join(HERE, "../../.build/bench"), help="the folder for the record")
options = parser.parse_args()
folder = tempfile.mkdtemp(prefix="bench-agents-")
try:
    save(run(options, folder), options.output)
except (paths.Failure, RuntimeError, OSError, wire.http.client.HTTPException) as failure:
    sys.exit("error: %s" % failure)
finally:
    shutil.rmtree(folder, ignore_errors=True)
