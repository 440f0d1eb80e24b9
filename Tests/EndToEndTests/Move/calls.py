"""Calls of an app through a tunnel, for the tests of tunnels that switch routes. usage: calls.py PORT

Four threads make calls continuously; each call prints one line: `call BEGAN ENDED OUTCOME MILLISECONDS`. BEGAN and ENDED are
stages, counted by the lines `stage` of the input. OUTCOME is the version in the app's response, `reset`, `hangs` or
`wrong:…`. Other lines of the input: `open NAME` starts a call and sends half of it, `more NAME` sends one more byte,
`end NAME` sends the rest and prints the outcome, `hear NAME` prints the outcome without sending. The end of the input
ends the program.
"""

import itertools
import json
import socket
import sys
import threading
import time

PATIENCE = 5
port = int(sys.argv[1])
numbers = itertools.count(1)
stage = 0
isOver = False


class Call:
    def __init__(self):
        self.number = next(numbers)
        body = json.dumps({"jsonrpc": "2.0", "id": self.number, "method": "tools/call",
                           "params": {"name": "launch_context", "arguments": {"padding": "x" * 20_000}}})
        self.rest = (f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     f"Content-Length: {len(body)}\r\n\r\n{body}").encode()
        self.end = time.monotonic() + PATIENCE
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)

    def send(self, count):
        piece, self.rest = self.rest[:count], self.rest[count:]
        self.socket.sendall(piece)

    def outcome(self):
        """Sends the rest and waits for the end of the response."""
        data = b""
        try:
            self.send(len(self.rest))
            while True:
                self.socket.settimeout(max(0.001, self.end - time.monotonic()))
                part = self.socket.recv(65536)
                if not part:
                    break
                data += part
        except (ConnectionResetError, BrokenPipeError):
            return "reset"
        except TimeoutError:
            return "hangs"
        finally:
            self.socket.close()
        try:
            answer = json.loads(data.partition(b"\r\n\r\n")[2])
            if answer["id"] == self.number:
                return json.loads(answer["result"]["content"][0]["text"])["version"]
        except (ValueError, KeyError):
            pass
        return "wrong:" + repr(data).replace(" ", "_")


def tell(*words):
    # One write per line, because several threads print.
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def call_on():
    while not isOver:
        began, start = stage, time.monotonic()
        try:
            outcome = Call().outcome()
        except OSError as error:
            outcome = "wrong:" + repr(error).replace(" ", "_")
        tell("call", began, stage, outcome, round((time.monotonic() - start) * 1000))
        time.sleep(0.005)


callers = [threading.Thread(target=call_on) for _ in range(4)]
for caller in callers:
    caller.start()
held = {}
for line in sys.stdin:
    word, *name = line.split()
    name = name[0] if name else ""
    if word == "stage":
        stage += 1
        tell("stage", stage)
    elif word == "open":
        held[name] = Call()
        held[name].send(10_000)
        tell(name, "is open")
    elif word == "more":
        held[name].send(1)
        tell(name, "sent more")
    else:
        call = held.pop(name)
        if word == "hear":
            call.rest = b""
        call.end = time.monotonic() + PATIENCE
        tell(name, "ended:", call.outcome())
isOver = True
for caller in callers:
    caller.join()
tell("done")
