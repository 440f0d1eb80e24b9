#!/usr/bin/env python3
"""Keeps the broker's listening sockets while the broker restarts, as systemd does: keeper.py PORT SOCKET COMMAND...

Prints "ready" when the sockets listen and the broker runs. A line "restart SECONDS" ends the broker, leaves it away for so long, and
starts it again; "restarted" is said as soon as it is away.
"""
import os
import signal
import socket
import sys
import time


def start(command, sockets):
    pid = os.fork()
    if pid == 0:
        # sd_listen_fds(3): they begin at 3; the copies are above, so that none is closed by another.
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
