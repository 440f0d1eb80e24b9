#!/usr/bin/env python3
"""Measures what launch watches cost: a broker at rest with many AppReveal servers that are online.

One process plays all servers. With --idle they close idle connections after so many seconds, as NanoHTTPD does after 5. Prints the
processor time of the broker, its memory, its descriptors and the connections that it opened, each for one minute at rest.
"""
import argparse
import asyncio
import os
import subprocess
import tempfile
import time

HEALTH = b'{"status":"ok","port":1,"auth":"session-token","bonjour":"advertising"}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(HEALTH), HEALTH)
opened = 0


def serve(idle):
    async def handle(reader, writer):
        global opened
        opened += 1
        try:
            if await asyncio.wait_for(reader.read(4096), idle):
                writer.write(ANSWER)
                await writer.drain()
        except (TimeoutError, ConnectionError, asyncio.CancelledError):
            pass
        writer.close()
    return handle


def ticks(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def resident(pid):
    return next(int(line.split()[1]) for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS:"))


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", default=".build/release")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--idle", type=float)
    parser.add_argument("--settle", type=float, default=90)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    ports = []
    for _ in range(options.count):
        server = await asyncio.start_server(serve(options.idle), "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/patchbay.toml", "w") as file:
            file.write("[api]\ntcp = false\n[discovery]\nenabled = false\n[devices]\nenabled = false\n")
            for number, port in enumerate(ports):
                file.write(f'[[endpoint]]\nname = "app-{number}"\naddress = "127.0.0.1"\nport = {port}\nkind = "appreveal"\n')
        environment = os.environ | {"PATCHBAY_SOCKET": f"{folder}/patchbay.sock", "HOME": folder}
        broker = subprocess.Popen(
            [f"{options.built}/patchbayd", "--config", f"{folder}/patchbay.toml", "--state-directory", f"{folder}/state"],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            await asyncio.sleep(options.settle)
            (before, start, connections) = (ticks(broker.pid), time.monotonic(), opened)
            await asyncio.sleep(options.seconds)
            share = (ticks(broker.pid) - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - start)
            print(f"{options.count} servers, idle limit {options.idle}: {share:.2%} of a core, {resident(broker.pid) / 1024:.1f} MB, "
                  f"{len(os.listdir(f'/proc/{broker.pid}/fd'))} descriptors, "
                  f"{(opened - connections) * 60 / options.seconds:.0f} connections a minute")
        finally:
            broker.terminate()
            broker.wait()


if __name__ == "__main__":
    asyncio.run(main())
