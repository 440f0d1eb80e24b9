#!/usr/bin/env python3
"""Compares tunnels to an Android phone with `adb forward` and with a client of adb's smart socket, on one machine.

  make bench-android ARGS="--rounds 5 --idle 5000"

All paths lead through one real adb server and one simulated phone (phone.py, which is the limit) to the same app; `direct` leaves
both out, and `relay` is the least program in the place of Patchbay (relay.c). The paths take turns, in alternating order. Prints what
each path loses in the trials in which adb loses bytes, the throughput, the time of connect + echo, 200 connections at once, and the
memory and descriptors of idle connections; writes the same as JSON to --output. Exits with 1 if Patchbay lost bytes or a connection that another path carried, not because of a speed.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import hashlib
import json
import os
import queue
import socket
import statistics
import sys
import tempfile
import time

from androidrig import ANSWER, LIMIT, PATHS, UPLOAD, Apps, Rig
from remote import drain, exactly, send

ECHO = 8 << 20


def received(connection):
    """Returns the number of bytes until the end, and how the connection ended."""
    count, buffer = 0, bytearray(1 << 18)
    try:
        while part := connection.recv_into(buffer):
            count += part
        return count, "normal end"
    except ConnectionResetError:
        return count, "reset"
    except TimeoutError:
        return count, "no end"


def lost_uploads(rig, path, apps, rounds, isHalf):
    """Sends 10 B or 100 kB and closes or half-closes at once. Returns how many uploads did not arrive whole."""
    sent, connections = collections.Counter(), []
    for number in range(rounds):
        size = UPLOAD if number % 2 else 10
        # The user of a client that has already closed is unknown, so only a tunnel for all users serves it.
        connection = rig.dial(path, "count", *([] if isHalf else ["--allow-any-user"]))
        connection.sendall(bytes(size))
        if isHalf:
            connection.shutdown(socket.SHUT_WR)
            connections.append(connection)
        else:
            connection.close()
        sent[size] += 1
    end = time.monotonic() + 10
    for _ in range(rounds):
        with contextlib.suppress(queue.Empty):
            size = apps.counts.get(timeout=max(0.1, end - time.monotonic()))
            sent[size] -= sent[size] > 0
    for connection in connections:
        connection.close()
    return sum(sent.values())


def lost_answer(rig, path, role):
    """Sends 100 kB and half-closes before the answer of 1 MiB. Returns the bytes of it that are lost."""
    with rig.dial(path, role) as connection:
        connection.sendall(bytes(UPLOAD))
        connection.shutdown(socket.SHUT_WR)
        return ANSWER - received(connection)[0]


def lost_echo(rig, path, asleep):
    """Sends 8 MiB to an echo, half-closes, and begins to read later. Returns the bytes that are lost, and the end."""
    with rig.dial(path, "echo") as connection, concurrent.futures.ThreadPoolExecutor() as pool:
        def upload():
            with contextlib.suppress(OSError):
                connection.sendall(bytes(ECHO))
                connection.shutdown(socket.SHUT_WR)

        pool.submit(upload)
        time.sleep(asleep)
        count, end = received(connection)
        return ECHO - count, end


def unplugged(rig):
    """Returns how each path ends a stream when the phone leaves."""
    connections = {path: rig.dial(path, "endless") for path in PATHS}
    for connection in connections.values():
        exactly(connection, 1 << 20)
    rig.unplug()
    ends = {path: received(connection)[1] for path, connection in connections.items()}
    for connection in connections.values():
        connection.close()
    rig.plug()
    rig.tunnels = {key: port for key, port in rig.tunnels.items() if key[0] == "patchbay"}  # adb forgets its own.
    return ends


def closed_port(rig, path):
    """Returns what a client of a port hears on which nothing listens."""
    try:
        with rig.dial(path, 1) as connection:
            return "accepted, then " + received(connection)[1]
    except ConnectionResetError:
        return "reset"
    except OSError as error:
        return str(error).split(": ")[-1]


def echo(rig, path, size):
    """Returns true if the bytes come back."""
    data = os.urandom(size)
    try:
        with rig.dial(path, "echo") as connection, concurrent.futures.ThreadPoolExecutor(1) as pool:
            sending = pool.submit(connection.sendall, data)
            got = exactly(connection, size)
            sending.result()
            return hashlib.sha1(got).digest() == hashlib.sha1(data).digest()
    except OSError:
        return False


def at_once(rig, path, count):
    """Returns how many of the connections that begin together echo 64 KiB, and the seconds for all."""
    rig.dial(path, "echo").close()
    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        good = sum(pool.map(lambda _: echo(rig, path, 1 << 16), range(count)))
    return good, time.perf_counter() - start


def connect_and_echo(rig, path, count):
    """Returns the median of the seconds for connect, echo of 64 bytes, and close."""
    times, data = [], bytes(64)
    for _ in range(count):
        start = time.perf_counter()
        with rig.dial(path, "echo") as connection:
            connection.sendall(data)
            exactly(connection, 64)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def throughput(rig, path, size):
    """Returns bytes per second up and down."""
    rates = []
    for action in (b"U", b"D"):
        with rig.dial(path, "blocks") as connection:
            connection.sendall(action + size.to_bytes(8, "big"))
            start = time.perf_counter()
            if action == b"U":
                send(connection, size)
                exactly(connection, 8)
            else:
                drain(connection, size)
            rates.append(size / (time.perf_counter() - start))
    return rates


def cost(pid):
    """Returns the resident bytes and the descriptors of a program."""
    resident = next(int(line.split()[1]) << 10 for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS:"))
    return resident, len(os.listdir(f"/proc/{pid}/fd"))


def idle(built, ports, path, count):
    """Holds connections that do nothing, on a rig of its own. Returns how many are open, and what each program needs for them."""
    with tempfile.TemporaryDirectory() as folder:
        rig, connections = Rig(built, folder, ports), []
        try:
            names = ["adb", "broker"] if path == "patchbay" else ["adb"]
            rig.dial(path, "echo").close()
            time.sleep(7)  # The broker releases the code of its start after 5 s.
            before = {name: cost(rig.programs[name].pid) for name in names}
            start = time.monotonic()
            while len(connections) < count and time.monotonic() < start + 60:
                connection = rig.dial(path, "echo")
                connection.sendall(b"x")
                if connection.recv(1):
                    connections.append(connection)
            seconds = time.monotonic() - start
            after = {name: cost(rig.programs[name].pid) for name in names}
            answers = [is_alive(each) for each in connections[::50]]
            return {"open": len(connections), "seconds": round(seconds, 1), "alive": f"{sum(answers)} of {len(answers)}",
                    **{name: [after[name][0] - before[name][0], after[name][1] - before[name][1]] for name in names}}
        except OSError as error:
            return {"open": len(connections), "problem": str(error)}
        finally:
            for connection in connections:
                connection.close()
            rig.stop()


def is_alive(connection):
    with contextlib.suppress(OSError):
        connection.sendall(b"y")
        return connection.recv(1) == b"y"
    return False


def turns(rounds, paths):
    return [list(paths) if number % 2 else list(reversed(paths)) for number in range(rounds)]


def trials(rig, apps, options):
    """Returns the rows of the trials in which adb loses bytes."""
    rows = {
        f"{options.uploads} uploads, immediate {name}, lost": {
            path: lost_uploads(rig, path, apps, options.uploads, name == "half-close") for path in PATHS
        } for name in ("half-close", "close")
    }
    rows[f"answer of {ANSWER} B after a half-close, lost"] = {
        path: max(lost_answer(rig, path, "answer") for _ in range(3)) for path in PATHS}
    echoes = {path: lost_echo(rig, path, options.asleep) for path in PATHS}
    rows[f"echo of {ECHO} B, half-close, late reader, lost"] = {path: lost for path, (lost, _) in echoes.items()}
    rows["the same ends with"] = {path: end for path, (_, end) in echoes.items()}
    rows["phone unplugged in mid-stream"] = unplugged(rig)
    rows["port on which nothing listens"] = {path: closed_port(rig, path) for path in PATHS}
    rows["answer only after the client's end, lost"] = {path: lost_answer(rig, path, "late") for path in PATHS}
    return rows


def speeds(rig, options):
    """Returns the rates and times of each round."""
    paths = (*PATHS, "relay", "direct")
    figures = {path: {"up": [], "down": [], "echo": []} for path in paths}
    for order in turns(options.rounds, paths):
        for path in order:
            up, down = throughput(rig, path, options.megabytes << 20)
            figures[path]["up"].append(up)
            figures[path]["down"].append(down)
            figures[path]["echo"].append(connect_and_echo(rig, path, options.connects))
    return figures


def show(title, columns, rows):
    print(f"\n{title:52}" + "".join(f"{column:>24}" for column in columns))
    for name, cells in rows.items():
        print(f"{name:52}" + "".join(f"{cells.get(column, ''):>24}" for column in columns))


def show_speeds(figures):
    middle = {path: {key: statistics.median(values) for key, values in each.items()} for path, each in figures.items()}
    show("medians of the rounds", middle, {
        "up, MB/s": {path: round(each["up"] / 1e6) for path, each in middle.items()},
        "down, MB/s": {path: round(each["down"] / 1e6) for path, each in middle.items()},
        "connect + echo, p50, µs": {path: round(each["echo"] * 1e6) for path, each in middle.items()},
    })
    for key in ("up", "down", "echo"):
        for other in ("adb forward", "smart socket", "relay"):
            ratios = [ours / theirs for ours, theirs in zip(figures["patchbay"][key], figures[other][key])]
            print(f"patchbay / {other} {key}: {statistics.median(ratios):.2f} (rounds: {min(ratios):.2f} to {max(ratios):.2f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", required=True, help="the folder of patchbay and patchbayd")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--connects", type=int, default=400)
    parser.add_argument("--uploads", type=int, default=40)
    parser.add_argument("--asleep", type=float, default=5)
    parser.add_argument("--at-once", type=int, default=200)
    parser.add_argument("--idle", type=int, default=5000)
    parser.add_argument("--output")
    options = parser.parse_args()
    built, apps = os.path.abspath(options.built), Apps()
    try:
        with tempfile.TemporaryDirectory() as folder:
            rig = Rig(built, folder, apps.ports)
            try:
                results = {"trials": trials(rig, apps, options)}
                show("trial", PATHS, results["trials"])
                results["speeds"] = speeds(rig, options)
                show_speeds(results["speeds"])
                results["at once"] = {path: at_once(rig, path, options.at_once) for path in PATHS}
            finally:
                rig.stop()
        show(f"{options.at_once} connections at once, 64 KiB each", PATHS, {
            "complete": {path: good for path, (good, _) in results["at once"].items()},
            "seconds": {path: f"{seconds:.2f}" for path, (_, seconds) in results["at once"].items()}})
        results["idle"] = {path: idle(built, apps.ports, path, options.idle) for path in ("adb forward", "patchbay")}
        print(f"\n{options.idle} idle connections")
        for path, result in results["idle"].items():
            print(f"{path}: {result['open']} open", *(
                f"{name}: {value[0] / 1e6:.1f} MB and {value[1]} descriptors more" if name in ("adb", "broker") else f"{name}: {value}"
                for name, value in result.items() if name != "open"), sep="; ")
    finally:
        apps.stop()
    if options.output:
        with open(options.output, "w") as file:
            json.dump(results, file, indent=1)
    lost = [row["patchbay"] for name, row in results["trials"].items() if name.endswith("lost") and "only after" not in name]
    if any(lost) or results["at once"]["patchbay"][0] < options.at_once or results["idle"]["patchbay"]["open"] < options.idle:
        sys.exit("patchbay lost bytes or connections")


if __name__ == "__main__":
    main()
