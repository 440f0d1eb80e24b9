#!/usr/bin/env python3
"""A stand-in for the lockdownd of a phone that is not paired: it answers QueryType and GetValue.

A message is a property list behind its length in four big-endian bytes. Prints "listening on PORT" when it is ready.
"""
import argparse
import plistlib
import socketserver


class Server(socketserver.StreamRequestHandler):
    def handle(self):
        while len(header := self.rfile.read(4)) == 4:
            request = plistlib.loads(self.rfile.read(int.from_bytes(header, "big")))
            body = plistlib.dumps(self.answer(request))
            self.wfile.write(len(body).to_bytes(4, "big") + body)

    def answer(self, request):
        if request["Request"] == "QueryType":
            return {"Request": "QueryType", "Type": "com.apple.mobile.lockdown"}
        if "Key" not in request:
            return {"Request": "GetValue", "Value": VALUES}
        if request["Key"] not in VALUES:
            return {"Request": "GetValue", "Key": request["Key"], "Error": "MissingValue"}
        return {"Request": "GetValue", "Key": request["Key"], "Value": VALUES[request["Key"]]}


parser = argparse.ArgumentParser()
parser.add_argument("name")
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--model", default="iPhone15,3")
parser.add_argument("--version", default="17.5")
options = parser.parse_args()
VALUES = {"DeviceName": options.name, "ProductType": options.model, "ProductVersion": options.version}
server = socketserver.ThreadingTCPServer(("127.0.0.1", options.port), Server)
server.daemon_threads = True
print("listening on", server.server_address[1], flush=True)
server.serve_forever()
