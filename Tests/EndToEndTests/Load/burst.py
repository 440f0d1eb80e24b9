#!/usr/bin/env python3
"""burst.py PORT COUNT BYTES: opens COUNT concurrent connections to an echo server, sends different BYTES on each, and keeps all
of them open until every echo has arrived. Prints the number of intact echoes."""
import asyncio
import resource
import sys

port, count, size = map(int, sys.argv[1:])
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 100)), hard))


async def one(number, everybody):
    sent = bytes((number + i * 7) % 251 for i in range(size))
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        back = await reader.readexactly(size)
    except (OSError, asyncio.IncompleteReadError):
        back = None
    await everybody.wait()
    if back is not None:
        writer.close()
    return back == sent


async def main():
    everybody = asyncio.Barrier(count)
    intact = sum(await asyncio.gather(*(one(n, everybody) for n in range(count))))
    print(f"intact {intact} of {count}")


asyncio.run(main())
