#!/usr/bin/env python3
"""Measures how fast the broker receives the messages of an app of the state debugger, and whether it loses one.

An app sends messages with a picture over loopback. The time ends when the broker holds the last one. As a comparison, the same
bytes go to a process that reads and drops them.
"""
import argparse
import json
import multiprocessing
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

import paths


def message(number, size):
    """A whole frame in the framing with an unsigned length."""
    content = b'{"state":{"n":%d},"action":"frame","imageData":"%s"}' % (number, b"/9j/" + b"A" * (size - 4))
    return b"\xce\x00" + struct.pack("<I", len(content)) + content


def send(port, frames):
    connection = socket.create_connection(("127.0.0.1", port))
    for frame in frames:
        connection.sendall(frame)
    return connection


def drop(listener):
    connection, _ = listener.accept()
    buffer = bytearray(1 << 20)
    while connection.recv_into(buffer):
        pass
    connection.sendall(b"!")


def direct(frames):
    """Returns the seconds until another process has read everything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        reader = multiprocessing.get_context("fork").Process(target=drop, args=(listener,))
        reader.start()
        start = time.perf_counter()
        connection = send(listener.getsockname()[1], frames)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
        seconds = time.perf_counter() - start
        reader.join()
    return seconds


class Broker(paths.Path):
    name = "patchbay"

    def __init__(self, work, built):
        self.work, self.built = work, built
        self.socket = os.path.join(work, "patchbay.sock")
        self.port = paths.free_port()

    def start(self):
        config = os.path.join(self.work, "patchbay.toml")
        with open(config, "w") as file:
            file.write('[broker]\nlog_level = "warning"\n[discovery]\nenabled = false\n[devices]\nenabled = false\n'
                       '[debuglink]\nenabled = true\nlisten = "127.0.0.1:%d"\n' % self.port)
        program = os.path.join(self.built, "patchbayd")
        if not os.path.exists(program):
            raise paths.Failure("%s is not there: make build" % program)
        self.spawn([program, "--config", config, "--socket", self.socket, "--state-directory", os.path.join(self.work, "state")],
                   self.work)
        paths.eventually("patchbayd does not answer", lambda: paths.ask(self.socket, "GET", "/health") is not None, 20)

    def patchbay(self, *words):
        program = os.path.join(self.built, "patchbay")
        return subprocess.run([program, *words, "--socket", self.socket], stdout=subprocess.PIPE, text=True).stdout

    def approve(self):
        listed = paths.eventually("no app is listed", lambda: paths.ask(self.socket, "GET", "/v1/endpoints")["endpoints"], 20)
        self.endpoint = listed[0]["id"]
        self.patchbay("approve", self.endpoint)

    def received(self):
        """Returns the number of the last state, and the number of all states that were held or dropped."""
        document = json.loads(self.patchbay("debug", "list", self.endpoint, "--json"))
        states = document["states"]
        return states[-1]["number"], document["droppedStates"] + len(states)


def run(options, work):
    broker = Broker(work, options.built)
    frames = [message(number, options.size) for number in range(1, options.count + 1)]
    megabytes = sum(map(len, frames)) / 1e6
    broker.start()
    try:
        connection = send(broker.port, frames[:1])
        broker.approve()
        before = broker.memory()["VmRSS"]
        start = time.perf_counter()
        for frame in frames[1:]:
            connection.sendall(frame)
        paths.eventually("the last message is not held", lambda: broker.received()[0] == options.count, 120)
        seconds = time.perf_counter() - start
        last, total = broker.received()
        after = broker.memory()["VmRSS"]
        processor = broker.processor_seconds()
    finally:
        broker.stop()
    print("direct: %.0f MB/s" % (megabytes / direct(frames)))
    print("patchbay: %.0f MB/s with the last query; %d of %d messages received, %d lost; %.1f s of processor time; %.0f -> %.0f MB resident"
          % ((megabytes - len(frames[0]) / 1e6) / seconds, total, options.count, options.count - last, processor, before, after))
    if last != options.count or total != options.count:
        raise paths.Failure("messages were lost")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--built", default=os.path.join(paths.HERE, "../../.build/release"), help="where patchbayd and patchbay are")
parser.add_argument("--count", type=int, default=500, help="how many messages")
parser.add_argument("--size", type=int, default=2_000_000, help="the size of a picture in base64 in bytes, a multiple of 4")
options = parser.parse_args()
folder = tempfile.mkdtemp(prefix="bench-states-")
try:
    run(options, folder)
except (paths.Failure, OSError) as failure:
    sys.exit("error: %s" % failure)
finally:
    shutil.rmtree(folder, ignore_errors=True)
