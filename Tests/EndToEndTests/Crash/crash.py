#!/usr/bin/env python3
"""Kills the broker and the command line at each system call that changes a file, and checks what the next start finds.

usage: crash.py PROGRAMS [--sample COUNT] [--seed SEED] [--only SCENARIO] [--mode MODE] [--at CALL]

What was acknowledged must be there, what was not is all or nothing, and the next start needs no person. A sample is COUNT
points of each scenario. Prints a line for each scenario and each violation; exits with 1 if there is one.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from rig import MODES, Died, Rig
from clients import CLIENTS
from scenarios import BROKERS


def calls(rig, scenario):
    """The calls of a whole run."""
    rig.restore()
    scenario.run(rig, rig.cut(scenario.program, 0, "kill"))
    return rig.calls()


def attempt(rig, scenario, number, mode):
    """Cuts one run and checks it; returns the violations and the call."""
    rig.restore()
    environment = rig.cut(scenario.program, number, mode)
    status = scenario.run(rig, environment)
    made = rig.calls()
    if len(made) < number:
        return [], None
    if status != -signal.SIGKILL:
        return [f"the program ended with {status}"], made[-1]
    try:
        return scenario.check(rig), made[-1]
    except (AssertionError, Died) as error:
        return [str(error)], made[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    parser.add_argument("--mode", choices=MODES)
    parser.add_argument("--at", type=int)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cut-") as folder:
        library = f"{folder}/cutpoint.so"
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cutpoint.c")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
        sys.exit(search(Rig(arguments.programs, library, folder), arguments))


def search(rig, arguments):
    """Cuts the scenarios; returns the exit status."""
    chosen = random.Random(arguments.seed)
    violations = points = 0
    for scenario in (make() for make in BROKERS + CLIENTS if arguments.only in (None, make.__name__)):
        start = time.monotonic()
        rig.clear()
        scenario.prepare(rig)
        rig.save()
        count = len(calls(rig, scenario))
        assert count > 0, f"{scenario.name} changes no file"
        wanted = [(number, mode) for number in range(1, count + 1) for mode in MODES]
        if arguments.at:
            wanted = [(arguments.at, mode) for mode in MODES]
        if arguments.mode:
            wanted = [point for point in wanted if point[1] == arguments.mode]
        if arguments.sample:
            wanted = chosen.sample(wanted, min(arguments.sample, len(wanted)))
        done = 0
        for number, mode in wanted:
            found, call = attempt(rig, scenario, number, mode)
            done += call is not None
            for violation in found:
                print(f"VIOLATION {scenario.name} --mode {mode} --at {number} ({call}): {violation}", flush=True)
            violations += len(found)
        points += done
        print(f"{scenario.name}: {count} calls, {done} points, {time.monotonic() - start:.0f} s", flush=True)
    print(f"{points} points, {violations} violations")
    return int(violations > 0)


if __name__ == "__main__":
    main()
