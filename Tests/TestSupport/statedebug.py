#!/usr/bin/env python3
"""A stand-in for an app with the client of a state debugger: it connects to ADDRESS PORT, sends states and receives them.

`earlier` frames with CE and an Int32, and takes each chunk for one frame. `later` frames with CE 00 and a UInt32.

Standard input takes `state JSON ACTION [BASE64]`, which sends a message byte for byte, and `raw HEX`, which sends bytes. Prints
"received HEX" or "misread HEX" for each frame, and "shows STATE" for each state that it received.
"""
import argparse
import socket
import struct
import sys
import threading


def say(*words):
    print(*words, flush=True)


def frame(content):
    if options.client == "earlier":
        return b"\xce" + struct.pack("<i", len(content)) + content
    return b"\xce\x00" + struct.pack("<I", len(content)) + content


def message(state, action, picture=""):
    image = ',"imageData":"%s"' % picture if picture else ""
    return ('{"state":%s,"action":"%s"%s}' % (state, action, image)).encode()


def take(is_whole, data, content):
    say("received" if is_whole else "misread", data.hex())
    if is_whole:
        say("shows", content.decode())


def read_earlier():
    """Takes each chunk for one frame, as the client of episode 111 does."""
    while chunk := connection.recv(1 << 20):
        is_whole = len(chunk) >= 5 and chunk[:1] == b"\xce" and struct.unpack("<i", chunk[1:5])[0] == len(chunk) - 5
        take(is_whole, chunk, chunk[5:])


def read_later():
    buffer = b""
    while chunk := connection.recv(1024):
        buffer += chunk
        while len(buffer) >= 6:
            end = 6 + struct.unpack("<I", buffer[2:6])[0]
            if len(buffer) < end:
                break
            take(buffer[:2] == b"\xce\x00", buffer[:end], buffer[6:end])
            buffer = buffer[end:]


def read():
    read_earlier() if options.client == "earlier" else read_later()
    say("closed")


parser = argparse.ArgumentParser()
parser.add_argument("client", choices=["earlier", "later"])
parser.add_argument("address")
parser.add_argument("port", type=int)
options = parser.parse_args()
connection = socket.create_connection((options.address, options.port))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
say("connected")
threading.Thread(target=read, daemon=True).start()
for line in sys.stdin:
    words = line.split()
    if words[0] == "raw":
        connection.sendall(bytes.fromhex(words[1]))
        continue
    for byte in frame(message(*words[1:])):
        connection.send(bytes([byte]))
    say("sent", words[2])
