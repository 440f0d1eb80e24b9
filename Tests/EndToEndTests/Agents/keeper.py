#!/usr/bin/env python3
"""Keeps the broker's listening sockets during restarts, as systemd does: keeper.py PORT SOCKET COMMAND...

Prints "ready" when the sockets listen and the broker runs. A line "restart SECONDS" stops the broker, prints "restarted" when it has
ended, and starts it again after SECONDS.
"""
import os
import signal
import socket
import sys
import time


def start(command, sockets):
    pid = os.fork()
    if pid == 0:
        # sd_listen_fds(3): the sockets begin at 3; the copies have higher numbers, so that no socket overwrites another.
        copies = [os.dup2(one.fileno(), 100 + number) for number, one in enumerate(sockets)]
        for number, copy in enumerate(copies):
            os.dup2(copy, 3 + number, inheritable=True)
        os.environ.update(LISTEN_FDS=str(len(sockets)), LISTEN_PID=str(os.getpid()))
        os.execv(command[0], command)
    return pid


port, path, *command = sys.argv[1:]
local = socket.socket(socket.AF_UNIX)
local.bind(path)
local.listen(4096)
sockets = [local, socket.create_server(("127.0.0.1", int(port)), backlog=4096)]
process = start(command, sockets)
print("ready", flush=True)
for line in sys.stdin:
    os.kill(process, signal.SIGTERM)
    os.waitpid(process, 0)
    print("restarted", flush=True)
    time.sleep(float(line.split()[1]))
    process = start(command, sockets)
os.kill(process, signal.SIGKILL)
