#!/usr/bin/env python3
"""A stand-in for a Flutter app: the port of a Dart VM service, and the advert that the app's engine publishes through Avahi.

Prints "listening on PORT" when the advert is established, and "connection" for each connection, which it closes.
"""
import argparse
import socket
import subprocess

parser = argparse.ArgumentParser()
parser.add_argument("--address", default="127.0.0.1")
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--bundle", default="com.example.flutter")
parser.add_argument("--code", default="EMYU73JbR-A=", help="the authentication code of the VM service")
options = parser.parse_args()

listener = socket.create_server((options.address, options.port))
port = listener.getsockname()[1]
publish = ["avahi-publish-service", options.bundle, "_dartVmService._tcp", str(port), "authCode=" + options.code]
publisher = subprocess.Popen(publish, stderr=subprocess.PIPE, text=True)
for line in publisher.stderr:
    if line.startswith("Established"):
        break
print("listening on", port, flush=True)
while True:
    connection, _ = listener.accept()
    print("connection", flush=True)
    connection.close()
