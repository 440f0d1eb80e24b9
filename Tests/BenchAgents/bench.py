#!/usr/bin/env python3
"""What a call through Patchbay costs beside a direct one, and beside other MCP proxies, in one run on one machine.

  make bench-agents ARGS="--rounds 5 --calls 200"

Every path leads to the same sample app, which has AppReveal's habits, and is asked by the same client: one at a time, over a
connection that is kept where the server keeps it. The paths take turns, so that what else the machine does hits all alike. Rivals
are installed from PyPI at the first run; --only NAME leaves the others out.
"""
import argparse
import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
import paths
import wire

HERE = os.path.dirname(os.path.abspath(__file__))


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def measure(path, client, calls):
    """Seconds of each call; nothing that is no answer counts as fast."""
    # Since its last turn the server may have closed the connection.
    client.connection.close()
    client.call(path.tool)
    before = path.processor_seconds()
    times = [client.call(path.tool) for _ in range(calls)]
    return times, path.processor_seconds() - before


def table(results, options):
    direct = results["direct"]
    print("\n%-22s %9s %9s %11s %11s %11s %11s" % ("", "p50", "p99", "added p50", "added p99", "CPU/call", "resident"))
    for name, result in results.items():
        p50, p99 = percentile(result.times, 0.5) * 1e3, percentile(result.times, 0.99) * 1e3
        added = ("", "") if name == "direct" else (
            "%+.2f ms" % (p50 - percentile(direct.times, 0.5) * 1e3), "%+.2f ms" % (p99 - percentile(direct.times, 0.99) * 1e3))
        processor = "%.2f ms" % (result.processor / len(result.times) * 1e3) if result.resident else ""
        resident = "%.0f MB" % result.resident if result.resident else ""
        print("%-22s %6.2f ms %6.2f ms %11s %11s %11s %11s" % (name, p50, p99, *added, processor, resident))
    print("\n%d calls of each, %d at a time; load when it began: %s" % (
        options.rounds * options.calls, options.calls, " ".join("%.1f" % value for value in LOAD)))


class Result:
    def __init__(self):
        self.times = []
        self.processor = 0.0
        self.resident = None


def run(options, work):
    app = paths.App(work)
    chosen = [paths.Direct(app)]
    results = {}
    try:
        for kind in (paths.Patchbay, paths.PatchbaySocket, paths.FastMCPProxy, paths.ContextForge):
            if options.only and kind.name not in options.only:
                continue
            print("starting", kind.name, "…", flush=True)
            path = kind(app, work, options)
            chosen.append(path)
            path.start()
        clients = {path.name: wire.Client(path) for path in chosen}
        for path in chosen:
            results[path.name] = Result()
            clients[path.name].open()
            # The first calls fill caches and pools; they are nobody's usual cost.
            measure(path, clients[path.name], 20)
        for number in range(options.rounds):
            print("round", number + 1, "of", options.rounds, flush=True)
            for path in chosen:
                times, processor = measure(path, clients[path.name], options.calls)
                results[path.name].times += times
                results[path.name].processor += processor
        for path in chosen:
            results[path.name].resident = path.resident()
        table(results, options)
        for path in chosen:
            path.extra()
    finally:
        for path in reversed(chosen):
            path.stop()
        app.stop()


LOAD = os.getloadavg()
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--built", default=os.path.join(HERE, "../../.build/release"), help="where patchbayd and patchbay are")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--calls", type=int, default=200, help="calls of each path in each round")
parser.add_argument("--only", action="append", help="a rival's or Patchbay's name; may be given several times")
parser.add_argument("--endpoints", type=int, default=100, help="how many the broker has when its memory is measured")
options = parser.parse_args()
folder = tempfile.mkdtemp(prefix="bench-agents-")
try:
    run(options, folder)
except paths.Failure as failure:
    sys.exit("error: %s" % failure)
finally:
    shutil.rmtree(folder, ignore_errors=True)
