#!/usr/bin/env python3
"""Measures the dashboard with many endpoints in Chromium, and what the activity adds to a call.

Each second --changes endpoints are replaced. Needs the environment of the browser test, which has Playwright.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
import paths
import wire

sys.path.append(os.path.join(paths.TESTS, "EndToEndTests/Dashboard"))
import page as pages

# What a frame costs, by the names of the events in a trace.
PARTS = {"script": "FireAnimationFrame", "style": "UpdateLayoutTree", "layout": "Layout"}


class Quiet(paths.Patchbay):
    """Without a history."""
    name = "without activity"
    configuration = "[activity]\ncalls = 0\n"


def change(broker, port, count, ending):
    """Replaces endpoints, half of the changes each way."""
    number, due = 0, time.monotonic()
    while not ending.is_set():
        added = broker.add("New %d" % number, port)
        paths.ask(broker.socket, "DELETE", "/v1/endpoints/%s" % added)
        number, due = number + 1, due + 2 / count
        time.sleep(max(0, due - time.monotonic()))


def measure_page(broker, options, port):
    for number in range(options.endpoints):
        broker.add("App %d" % number, port)
    code = subprocess.run([os.path.join(options.built, "patchbay"), "dashboard", "--no-open", "--socket", broker.socket],
                          stdout=subprocess.PIPE, text=True, check=True).stdout.split("#code=")[1].split()[0]
    with pages.browser() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(60000)
        pages.open_page(page, "http://127.0.0.1:%d" % broker.port, code)
        rows = "n => document.querySelectorAll('.row').length >= n"
        page.wait_for_function(rows, arg=options.endpoints)
        paints = []
        for _ in range(10):
            page.reload()
            paint = page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
            paints.append(paint.json_value())
            page.wait_for_function(rows, arg=options.endpoints)
        devtools = page.context.new_cdp_session(page)
        devtools.send("Performance.enable")

        def metrics():
            return {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}
        ending = threading.Event()
        changes = threading.Thread(target=change, args=(broker, port, options.changes, ending))
        changes.start()
        page.wait_for_timeout(2000)
        browser.start_tracing(page=page, categories=["devtools.timeline"])
        before, began = metrics(), time.monotonic()
        page.wait_for_timeout(options.seconds * 1000)
        after, passed = metrics(), time.monotonic() - began
        trace = json.loads(browser.stop_tracing())["traceEvents"]
        ending.set()
        changes.join()
        devtools.send("HeapProfiler.collectGarbage")
        kept = metrics()["JSHeapUsedSize"]
    script = (after["ScriptDuration"] - before["ScriptDuration"]) / passed
    print("%d endpoints, %d changes a second, load %.2f:" % (options.endpoints, options.changes, os.getloadavg()[0]))
    print("  first paint: median %.0f ms, longest of %d %.0f ms" % (statistics.median(paints), len(paints), max(paints)))
    # The time of the thread, because with other programs on the cores the clock shows theirs.
    for part, event in PARTS.items():
        times = sorted(each["tdur"] / 1000 for each in trace if each["name"] == event and "tdur" in each)
        print("  %s in a frame: p50 %.1f ms, p99 %.1f ms, longest %.1f ms of %d" % (
            part, times[len(times) // 2], times[len(times) * 99 // 100], times[-1], len(times)))
    print("  script: %.1f %% of a core" % (script * 100))
    print("  JS heap: %.1f MB, %.1f MB after a collection" % (after["JSHeapUsedSize"] / 1e6, kept / 1e6))


def measure_calls(brokers, options):
    """Calls in turns, so that the machine is the same for all."""
    clients, ratios = [wire.Client(broker) for broker in brokers], []
    times = [[] for _ in brokers]
    for client in clients:
        client.open()
        for _ in range(600):
            client.call(brokers[0].tool)
    for _ in range(options.rounds):
        medians = []
        for client, all_ in zip(clients, times):
            found = [client.call(brokers[0].tool) for _ in range(options.calls)]
            medians.append(statistics.median(found))
            all_ += found
        ratios.append(medians[0] / medians[1])
    with_, without = (statistics.median(found) * 1e3 for found in times)
    print("a call: %.3f ms with 500 entries, %.3f ms without activity; median ratio of %d rounds %.3f (%.3f to %.3f)" % (
        with_, without, len(ratios), statistics.median(ratios), min(ratios), max(ratios)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", default=".build/release")
    parser.add_argument("--endpoints", type=int, default=1000)
    parser.add_argument("--changes", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-dashboard-") as work:
        app = paths.App(work)
        brokers = [kind(app, work, options) for kind in (paths.Patchbay, Quiet)]
        try:
            for broker in brokers:
                broker.start()
            measure_calls(brokers, options)
            measure_page(brokers[1], options, app.port)
        finally:
            for program in (*brokers, app):
                program.stop()


if __name__ == "__main__":
    main()
