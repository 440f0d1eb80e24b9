#!/usr/bin/env python3
"""A peer of the state debugger: another debugger, or a sender of frames or garbage.

  debug_peer.py debugger PORT                     accepts apps; prints the bytes of each connection
  debug_peer.py frames COUNT SIZE ADDRESS PORT    sends COUNT messages with a picture of SIZE bytes
  debug_peer.py states ADDRESS PORT               sends a state every 5 ms until the end of standard input
  debug_peer.py garbage BYTES SEED ADDRESS PORT   sends BYTES that are no messages, over 4 connections at once

A debugger reads lines `send NUMBER HEX` from standard input.
"""
import random
import socket
import struct
import sys
import threading
import time


def say(*words):
    print(*words, flush=True)


def debugger(port):
    listener = socket.create_server(("0.0.0.0", int(port)))
    connections = []

    def read(number, connection):
        while chunk := connection.recv(1 << 16):
            say("from", number, chunk.hex())
        say("closed", number)

    def accept():
        while True:
            connection, _ = listener.accept()
            connections.append(connection)
            threading.Thread(target=read, args=(len(connections), connection), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    say("listening")
    for line in sys.stdin:
        _, number, data = line.split()
        connections[int(number) - 1].sendall(bytes.fromhex(data))


def frames(count, size, address, port):
    content = b'{"state":{"a":1},"action":"frame","imageData":"%s"}' % (b"/9j/" + b"A" * (int(size) - 4))
    connection = socket.create_connection((address, int(port)))
    start = time.time()
    for _ in range(int(count)):
        connection.sendall(b"\xce\x00" + struct.pack("<I", len(content)) + content)
    say("began %.6f" % start)
    sys.stdin.readline()


def states(address, port):
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    connection = socket.create_connection((address, int(port)))
    count = 0
    while not ended.wait(0.005):
        count += 1
        content = b'{"state":{"n":%d},"action":"tick"}' % count
        connection.sendall(b"\xce\x00" + struct.pack("<I", len(content)) + content)
        if count == 1:
            say("sending")
    say("sent", count)
    # The connection stays open, so that the app stays online.
    threading.Event().wait()


def garbage(size, seed, address, port):
    counts = [0, 0]
    lock = threading.Lock()

    def begin(source):
        return source.choice([
            source.randbytes(64),
            b"GET / HTTP/1.1\r\n\r\n",
            b"\xce" + struct.pack("<i", -source.randrange(1, 1 << 31)),
            b"\xce\x00" + struct.pack("<I", source.randrange(1 << 27, 1 << 32)),
            b"\xce" + struct.pack("<i", source.randrange(1 << 20, 1 << 26)) + b"{",
        ])

    def send(number):
        source = random.Random(int(seed) + number)
        chunk = source.randbytes(1 << 20)
        left = int(size) // 4
        while left > 0:
            connection = socket.create_connection((address, int(port)))
            sent = 0
            try:
                connection.sendall(begin(source))
                while sent < left:
                    connection.sendall(chunk)
                    sent += len(chunk)
            except OSError:
                pass
            connection.close()
            left -= sent
            with lock:
                counts[0] += sent
                counts[1] += 1

    senders = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    say("garbage", *counts)


{"debugger": debugger, "frames": frames, "states": states, "garbage": garbage}[sys.argv[1]](*sys.argv[2:])
