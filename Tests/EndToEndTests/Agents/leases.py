#!/usr/bin/env python3
"""Agents that share one phone, each with a grant and an MCP client of its own.

  leases.py SETUP URL ENDPOINT free|ROUNDS SECONDS

Reads one grant per line; the last one is for a client without leases. With `free`, all agents make one changing call at the same time,
without leases. Otherwise each agent takes ROUNDS turns, or as many as begin within SECONDS if that is not 0. A turn has four calls, and
the last one ends the lease. The first agent never ends its leases of one second. Meanwhile the client without leases reads, and tries
changing calls. Prints the results as JSON.
"""
import asyncio
import contextlib
import json
import os
import sys
import time

import peer

CALLS = 4


class Agent:
    def __init__(self, client, endpoint, label):
        self.client, self.endpoint, self.label = client, endpoint, label
        self.turns, self.longest, self.errors = 0, 0.0, []

    async def call(self, tool="wait", **more):
        arguments = {"seconds": 0.01, "label": self.label} if tool == "wait" else {}
        request = {"endpoint": self.endpoint, "name": tool, "arguments": arguments, "timeoutSeconds": 120, **more}
        result = await self.client.call("endpoint_call", request, seconds=150)
        text = " ".join(getattr(block, "text", "") for block in result.content)
        return None if not getattr(result, "isError", None) else text

    async def turn(self, keeps):
        began = time.monotonic()
        for number in range(CALLS):
            lease = 1 if keeps else 30 if number < CALLS - 1 else 0
            if error := await self.call(lease=lease):
                self.errors.append(error)
            if number == 0:
                self.longest = max(self.longest, time.monotonic() - began)
        self.turns += 1

    async def take_turns(self, rounds, seconds, keeps):
        end = time.monotonic() + seconds
        while time.monotonic() < end if seconds else self.turns < rounds:
            await self.turn(keeps)


async def watch(outsider, done):
    """Reads, and tries changing calls, until the agents have finished. Returns the numbers of reads and of refused calls."""
    reads = refused = 0
    while not done.is_set():
        if error := await outsider.call("get_state"):
            outsider.errors.append(error)
        reads += 1
        if error := await outsider.call():
            refused += 1
            if 'is leased to "' not in error:
                outsider.errors.append(error)
        await asyncio.sleep(0.05)
    return reads, refused


async def main(setup, url, endpoint, rounds, seconds):
    grants = [line.strip() for line in sys.stdin]
    async with contextlib.AsyncExitStack() as stack:
        agents = []
        for number, grant in enumerate(grants):
            os.environ["PATCHBAY_GRANT"] = grant
            client = await stack.enter_async_context(peer.connect(setup, url))
            agents.append(Agent(client, endpoint, "agent-%d" % number))
        outsider, agents = agents[-1], agents[:-1]
        if rounds == "free":
            results = await asyncio.gather(*(agent.call() for agent in agents))
            return print(json.dumps({"errors": [error for error in results if error]}))
        done = asyncio.Event()
        watching = asyncio.create_task(watch(outsider, done))
        await asyncio.gather(
            *(agent.take_turns(int(rounds), float(seconds), keeps=number == 0) for number, agent in enumerate(agents)))
        done.set()
        reads, refused = await watching
        print(json.dumps({
            "turns": [agent.turns for agent in agents], "reads": reads, "refused": refused,
            "longestWait": max(agent.longest for agent in agents),
            "errors": [error for agent in agents + [outsider] for error in agent.errors][:5]}))


asyncio.run(main(*sys.argv[1:]))
