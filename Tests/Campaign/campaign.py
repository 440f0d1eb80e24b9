#!/usr/bin/env python3
"""Runs a seeded schedule of faults against the real broker, and compares it with what exists after each step.

    campaign.py [--built DIR] [--seed N] [--minutes M] [--subject team] [--only NAME,NAME] [--steps 3,7,9] [--go-on] [--no-shrink]

Everything runs in namespaces of its own, and needs root. A schedule is a function of its seed alone. A violation ends the run: the
program shortens the schedule as long as it shows the violation, and prints the command that replays it.
"""
import argparse
import os
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
import acts
import faults
import report
import schedule
from daemons import build_usb
import team_faults
from oracle import Oracle
from programs import Failure, make_bridge
from team import TeamTraffic, TeamWorld
from traffic import Traffic
from world import World

# What a campaign is about: its world, its clients, its oracle and its table of steps with their weights.
SUBJECTS = {
    "host": (World, Traffic, Oracle, faults.TABLE | acts.TABLE),
    "team": (TeamWorld, TeamTraffic, team_faults.TeamOracle, team_faults.TABLE),
}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", default=".build/debug", help="the folder of patchbayd")
    parser.add_argument("--rig", default=".build/rig", help="the folder for the stand-in of libusb")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--subject", choices=SUBJECTS, default="host", help="one host, or a team of three on etcd")
    parser.add_argument("--only", default="", help="the names of steps, separated by commas")
    parser.add_argument("--steps", help="the numbers of the steps to replay")
    parser.add_argument("--limit", type=float, default=5, help="the seconds until the list equals reality")
    parser.add_argument("--go-on", action="store_true", help="do not stop at the first violation")
    parser.add_argument("--no-shrink", action="store_true")
    return parser.parse_args()


def run(options, steps, seconds, quiet=False):
    """Runs steps until the first violation or the end of the time. Returns the world, the oracle and the last step."""
    with tempfile.TemporaryDirectory(prefix="campaign-", ignore_cleanup_errors=True) as folder:
        make_world, make_traffic, make_oracle, _ = SUBJECTS[options.subject]
        world = make_world(os.path.abspath(options.built), folder, options.library)
        traffic = make_traffic(world, options.seed)
        oracle = make_oracle(world, traffic, options.limit)
        end, step, reported = time.monotonic() + seconds, None, 0
        try:
            oracle.check("start")
            for step in steps:
                if (world.records.violations and not options.go_on) or time.monotonic() > end:
                    break
                start = time.monotonic()
                world.records.count(f"step {step.name}")
                step.perform(world, traffic)
                oracle.check(step.name)
                if not quiet:
                    print(f"{step.number:4} {step.name:20} {time.monotonic() - start:5.1f} s", flush=True)
                    for _, text in world.records.violations[reported:]:
                        print(f"     VIOLATION {text}", flush=True)
                reported = len(world.records.violations)
                if step.number % 20 == 19:
                    oracle.check_audit()
            oracle.check_audit()
            oracle.check_flat(slack=60_000)
        except Exception as error:
            # A request to the broker that fails without a reason is a finding, too.
            world.records.violate(f"{step and step.name}: {error!r}\n{traceback.format_exc()}")
        finally:
            traffic.stop()
            logs = [name for name in sorted(os.listdir(folder)) if name in ("broker.log", "lab1.log", "lab2.log", "lab3.log")]
            oracle.log = "".join(open(f"{folder}/{name}").read() for name in logs)
            world.stop()
    return world, oracle, traffic, step


def main():
    options = parse()
    if os.environ.get("PATCHBAY_CAMPAIGN") != "inside":
        words = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, *sys.argv]
        os.execvpe(words[0], words, os.environ | {"PATCHBAY_CAMPAIGN": "inside"})
    make_bridge()
    options.library = build_usb(os.path.abspath(options.rig))
    only = [name for name in options.only.split(",") if name]
    numbers = None if options.steps is None else [int(number) for number in options.steps.split(",") if number]
    table = SUBJECTS[options.subject][3]
    steps = schedule.steps(options.seed, table, only, numbers)
    world, oracle, traffic, last = run(options, steps, options.minutes * 60)
    report.print_report(options, world, oracle, traffic)
    if not world.records.violations:
        return 0
    print(f"broker log:\n{oracle.log[-100_000:]}")
    if last and not options.no_shrink:
        shown = schedule.shrink(options, last.number, table, only, numbers, run)
        print(f"shortest schedule: {' '.join(f'{step.number}:{step.name}' for step in shown)}")
        print(f"replay: {sys.argv[0]} --subject {options.subject} --seed {options.seed}" + (f" --only {options.only}" if only else "")
              + f" --steps {','.join(str(step.number) for step in shown)}")
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"campaign: {failure}")
