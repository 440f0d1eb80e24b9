"""Leads from this machine to the page of the demo's broker, which has a network of its own.

relay.py listen COMMAND …   listens at 127.0.0.1:7282, and runs the command, which inherits the socket as DEMO_PAGE_SOCKET
relay.py serve NUMBER       inside of the demo: relays each connection of that socket to 127.0.0.1:7282 there

A socket stays in the network in which it was made. So the two ends are in different networks, and nothing else leads from one
to the other. Any user of this machine can connect, but the page gives nothing without a code.
"""

import os
import socket
import sys
import threading

PAGE = ("127.0.0.1", 7282)


def listen(command):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(PAGE)
        listener.listen()
        listener.set_inheritable(True)
        os.environ["DEMO_PAGE_SOCKET"] = str(listener.fileno())
    except OSError:
        pass  # a broker of this machine has the port; the demo says so
    os.execvp(command[0], command)


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for each in (source, target):
            each.close()


def serve(number):
    listener = socket.socket(fileno=number)
    while True:
        client, _ = listener.accept()
        try:
            broker = socket.create_connection(PAGE)
        except OSError:
            client.close()
            continue
        for ends in ((client, broker), (broker, client)):
            threading.Thread(target=copy, args=ends, daemon=True).start()


if sys.argv[1] == "listen":
    listen(sys.argv[2:])
else:
    serve(int(sys.argv[2]))
