"""What clients do all the time: streams through tunnels, calls of agents, and an owner's `list`."""
import contextlib
import http.client
import json
import os
import random
import socket
import struct
import sys
import threading
import time
import types

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../BenchAgents"))
import wire
from apps import pattern
from broker import Answer


class Traffic:
    def __init__(self, world, seed):
        self.world, self.records, self.ended = world, world.records, threading.Event()
        self.last_streams, self.last_calls, self.calls, self.list_times = {}, {}, {}, []
        self.agents, self.last_texts = {}, {}
        # Times during which a broker that does not answer is no finding.
        self.quiet = []
        work = [(self.stream, phone) for phone in world.phones] + [(self.call, app) for app in world.apps] + [(self.list, None)]
        self.threads = [threading.Thread(target=self.repeat, args=(act, subject, random.Random(f"{seed} {number}")), daemon=True)
                        for number, (act, subject) in enumerate(work)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(40)

    def repeat(self, act, subject, choice):
        number = 0
        while not self.ended.is_set():
            number += 1
            try:
                act(subject, choice, number)
            except (OSError, http.client.HTTPException, ValueError, RuntimeError):
                self.records.count(f"{act.__name__}s cut")
            self.ended.wait(choice.uniform(0.2, 0.6))

    def stream(self, phone, choice, number):
        """Sends and receives bytes of this phone. A normal end before the last byte is a violation."""
        kind = choice.choices(["whole", "slow", "vanishing"], [8, 1, 1])[0]
        down, up = choice.choice([100, 20_000, 200_000, 800_000]), choice.choice([0, 100, 20_000, 200_000])
        nonce, start = f"{phone.name}-{number}-{choice.getrandbits(32):x}", time.monotonic()
        connection = socket.create_connection(("127.0.0.1", phone.port), 15)
        with connection:
            connection.sendall(f"{down} {up} {nonce}\n".encode() + pattern(f"up {phone.name} {nonce}", up))
            expected, got = pattern(f"down {phone.name} {nonce}", down), bytearray()
            if kind == "vanishing":
                connection.recv(1000)
                # A reset, or a normal close.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", choice.randrange(2), 0))
                return self.records.count("streams abandoned")
            while part := connection.recv(1 << 16):
                if part != expected[len(got):len(got) + len(part)]:
                    return self.records.violate(f"wrong bytes at {len(got)} of the stream {nonce}")
                got += part
                if kind == "slow":
                    time.sleep(0.02)
        self.records.count("bytes compared", len(got) + up)
        if len(got) == down:
            self.records.count("streams whole")
            self.last_streams[phone.name] = start
        # The kernel ends the connections of a killed broker, which cannot say why.
        elif any(start < end for end in self.world.broker.ended):
            self.records.count("streams cut")
        else:
            self.records.violate(f"the stream {nonce} ended normally after {len(got)} of {down} bytes")

    def call(self, app, choice, number):
        """Calls a changing tool with a label that the app records."""
        label, start = f"{app.bundle}-{number}-{choice.getrandbits(32):x}", time.monotonic()
        self.calls[label] = call = {"app": app.bundle, "start": start, "end": None, "ok": False}
        try:
            if app.bundle not in self.agents:
                agent = Agent(self.world.broker.port, app.id, app.secret)
                agent.open()
                self.agents[app.bundle] = agent
            text = self.agents[app.bundle].call("wait", {"label": label, "seconds": 0})
            call["text"] = text or self.agents[app.bundle].text
        except BaseException as error:
            # The next call has a new session.
            self.agents.pop(app.bundle, None)
            call["text"] = repr(error)
            raise
        finally:
            call["end"], self.last_texts[app.bundle] = time.monotonic(), call.get("text")
        if text is None:
            return self.records.count("calls refused")
        call["ok"] = True
        self.last_calls[app.bundle] = start
        self.records.count("calls answered")
        if f'"{app.bundle}"' not in text:
            self.records.violate(f"the call {label} was answered by another app: {text[:200]}")

    def list(self, _, __, ___):
        start = time.monotonic()
        with contextlib.suppress(Answer):
            self.world.broker.request("GET", "/v1/endpoints", timeout=30)
        self.list_times.append((start, time.monotonic() - start))


class Agent(wire.Client):
    """An MCP client with the session of a grant at one app."""

    def __init__(self, port, id, token):
        headers = {"Authorization": f"Bearer {token}"}
        super().__init__(types.SimpleNamespace(name=id, address=("127.0.0.1", port), target=f"/e/{id}/mcp", headers=headers))

    def call(self, tool, arguments):
        """Returns the text of the result, and None for an error."""
        answer = self.post("tools/call", {"name": tool, "arguments": arguments})[0]
        result = answer.get("result", {"isError": True})
        self.text = json.dumps(answer)[:300]
        return None if result.get("isError") else "".join(part.get("text", "") for part in result["content"])


def call_tool(port, id, token, tool, arguments):
    """Calls a tool in a session of its own."""
    agent = Agent(port, id, token)
    with contextlib.closing(agent.connection):
        agent.open()
        return agent.call(tool, arguments)
