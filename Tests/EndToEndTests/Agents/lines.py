"""Starts `patchbay mcp` once for each protocol version, makes a long call, and checks every line of standard output.

Usage: lines.py SECONDS COMMAND...   Prints one line for each version: the version, and the number of lines or the fault.
"""

import json
import subprocess
import sys
import threading

SESSION_VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
STATELESS_VERSION = "2026-07-28"
# Longer than the call, which may wait for a turn.
LIMIT = 60


def messages(version, seconds):
    call = {"name": "wait", "arguments": {"seconds": seconds}}
    if version == STATELESS_VERSION:
        call["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientInfo": {"name": "lines", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        return [{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}]
    start = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "lines", "version": "1"}}
    return [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]


def check(version, seconds, command):
    shim = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    killer = threading.Timer(LIMIT, shim.kill)
    killer.start()
    count = 0
    try:
        for message in messages(version, seconds):
            shim.stdin.write(json.dumps(message).encode() + b"\n")
        shim.stdin.flush()
        for line in shim.stdout:
            count += 1
            try:
                response = json.loads(line)
            except ValueError:
                return f"line {count} is {line!r}"
            if response.get("id") == 2:
                return f"{count} lines" if "result" in response else f"the call failed: {response}"
        return "the output ended without a result"
    finally:
        killer.cancel()
        shim.stdin.close()
        shim.kill()
        shim.wait()


def main():
    seconds, command = int(sys.argv[1]), sys.argv[2:]
    results = {}
    threads = []
    for version in SESSION_VERSIONS + [STATELESS_VERSION]:
        thread = threading.Thread(
            target=lambda version=version: results.__setitem__(version, check(version, seconds, command))
        )
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    for version, result in results.items():
        print(version, result)


main()
