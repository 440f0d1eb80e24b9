#!/usr/bin/env python3
"""A stand-in for OpenAgents: a WebSocket server (RFC 6455) that answers `initialize` and nothing before it.

Prints "listening on PORT", and "text: MESSAGE" for each message.
"""
import argparse
import base64
import hashlib
import json
import socketserver
import struct

MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, CLOSE = 1, 8
WELCOME = {"protocol_version": "0.2.2", "agent_capabilities": {}, "auth_methods": [],
           "agent_info": {"name": "openagents-mac", "title": "OpenAgents macOS", "version": "0.1.0"}}


class Client(socketserver.StreamRequestHandler):
    def handle(self):
        key = self.key()
        if key is None:
            return self.wfile.write(b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n")
        proof = base64.b64encode(hashlib.sha1((key + MAGIC).encode()).digest()).decode()
        self.wfile.write(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          "Sec-WebSocket-Accept: %s\r\n\r\n" % proof).encode())
        while True:
            code, content = self.read()
            if code == CLOSE:
                return self.send(CLOSE, content[:2])
            if code == TEXT:
                print("text:", content.decode(), flush=True)
                self.answer(json.loads(content))

    def answer(self, request):
        known = request.get("method") == "initialize"
        outcome = {"result": WELCOME} if known else {"error": {"code": -32002, "message": "Not initialized"}}
        self.send(TEXT, json.dumps({"jsonrpc": "2.0", "id": request.get("id"), **outcome}).encode())

    def key(self):
        """Reads the head of the request and returns the client's key."""
        key = None
        while line := self.rfile.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            if name.lower() == "sec-websocket-key":
                key = value.strip()
        return key

    def read(self):
        """Reads a frame; the end of the connection is a close."""
        head = self.rfile.read(2)
        if len(head) < 2:
            return CLOSE, b""
        length = head[1] & 0x7F
        if length > 125:
            kind = ">H" if length == 126 else ">Q"
            length, = struct.unpack(kind, self.rfile.read(struct.calcsize(kind)))
        mask = self.rfile.read(4)
        content = self.rfile.read(length)
        return head[0] & 0x0F, bytes(byte ^ mask[index % 4] for index, byte in enumerate(content))

    def send(self, code, content):
        size = bytes([len(content)]) if len(content) < 126 else struct.pack(">BH", 126, len(content))
        self.wfile.write(bytes([0x80 | code]) + size + content)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


parser = argparse.ArgumentParser()
parser.add_argument("--address", default="127.0.0.1")
parser.add_argument("--port", type=int, default=0)
options = parser.parse_args()
server = Server((options.address, options.port), Client)
print("listening on", server.server_address[1], flush=True)
server.serve_forever()
