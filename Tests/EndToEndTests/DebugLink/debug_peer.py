#!/usr/bin/env python3
"""A peer of the state debugger: another debugger, or a sender of frames.

  debug_peer.py debugger PORT                     accepts apps; prints the bytes of each connection
  debug_peer.py frames COUNT SIZE ADDRESS PORT    sends COUNT messages with a picture of SIZE bytes

A debugger reads lines `send NUMBER HEX` from standard input.
"""
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
    content = b'{"state":{"a":1},"action":"frame","imageData":"%s"}' % (b"A" * int(size))
    connection = socket.create_connection((address, int(port)))
    start = time.time()
    for _ in range(int(count)):
        connection.sendall(b"\xce\x00" + struct.pack("<I", len(content)) + content)
    say("began %.6f" % start)
    sys.stdin.readline()


{"debugger": debugger, "frames": frames}[sys.argv[1]](*sys.argv[2:])
