"""Bytes that arrive through busy tunnels after the end of their grant. SOCKET and PORT are the broker's listeners.

  revoke SOCKET PORT TUNNELS ROUNDS   revokes a grant with TUNNELS busy tunnels and an event stream
  expire SOCKET PORT TUNNELS          lets the grant expire instead

The received bytes and the state of each connection are read from the kernel (TCP_INFO). Readers and senders run in separate
processes.
"""

import os
import select
import signal
import socket
import struct
import sys
import time

sys.dont_write_bytecode = True
from api_client import ask, head, pair, tcp, unix

CLOSED = 7  # TCP_CLOSE: the connection was reset


def facts(caller):
    """Returns the state and the received bytes of a connection: tcpi_state and tcpi_bytes_received."""
    info = caller.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return info[0], struct.unpack_from("Q", info, 128)[0]


def fork(work, *arguments):
    child = os.fork()
    if child == 0:
        try:
            work(*arguments)
        finally:
            os._exit(0)
    return child


def flood(listener):
    """Sends to every client without end."""
    listener.setblocking(False)
    poll, peers, block = select.epoll(), {}, b"x" * 65536
    poll.register(listener, select.EPOLLIN)
    while True:
        for number, _ in poll.poll():
            if number == listener.fileno():
                peer = listener.accept()[0]
                peer.setblocking(False)
                peers[peer.fileno()] = peer
                poll.register(peer, select.EPOLLOUT)
                continue
            try:
                peers[number].send(block)
            except BlockingIOError:
                pass
            except OSError:
                poll.unregister(number)
                peers.pop(number).close()


def drain(callers):
    """Reads all connections as fast as possible."""
    poll, buffer = select.epoll(), bytearray(1 << 20)
    open = {caller.fileno(): caller for caller in callers}
    for caller in callers:
        caller.setblocking(False)
        poll.register(caller, select.EPOLLIN)
    while open:
        for number, _ in poll.poll():
            try:
                isOver = open[number].recv_into(buffer) == 0
            except BlockingIOError:
                continue
            except OSError:
                isOver = True
            if isOver:
                poll.unregister(number)
                del open[number]


class Bed:
    """A grant with busy tunnels and an event stream."""

    def __init__(self, path, port, endpoint, count, **terms):
        begin = time.monotonic()
        self.grant, self.token = pair(path, port, ("registry.read", "tunnel.open"), **terms)
        self.granted = (begin, time.monotonic())
        spec = {"local": "tcp:127.0.0.1:0", "target": {"endpoint": endpoint}, "noRebind": True, "persistent": True}
        self.callers = []
        for _ in range(count):
            status, tunnel, _ = ask(tcp(port), "POST", "/v1/tunnels", spec, self.token)
            assert status == 201, tunnel
            self.callers.append(tcp(tunnel["listenAddresses"][0].rsplit(":", 1)[1]))
        events = tcp(port)
        events.sendall(head("GET", "/v1/events", more=f"Authorization: Bearer {self.token}\r\n"))
        self.callers.append(events)
        self.reader = fork(drain, self.callers)
        end = time.monotonic() + 10
        while min(facts(caller)[1] for caller in self.callers) == 0:
            assert time.monotonic() < end, "a tunnel is silent"
            time.sleep(0.01)

    def facts(self):
        return [facts(caller) for caller in self.callers]

    def clear(self):
        os.kill(self.reader, signal.SIGKILL)
        os.waitpid(self.reader, 0)
        for caller in self.callers:
            caller.close()


def bed(path):
    """Adds an endpoint that sends without end; returns its process and the endpoint's ID."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    sender = fork(flood, listener)
    static = {"name": f"flood-{sender}", "kind": "debug", "address": "127.0.0.1", "port": listener.getsockname()[1]}
    status, endpoint, _ = ask(unix(path), "POST", "/v1/endpoints", static)
    assert status == 201, endpoint
    return sender, endpoint["id"]


def silence(ground, pipe):
    """Returns the time at which all connections were closed, checked every millisecond."""
    while any(state != CLOSED for state, _ in ground.facts()):
        time.sleep(0.001)
    os.write(pipe, struct.pack("d", time.monotonic()))


def figures(times):
    times = sorted(time * 1e3 for time in times)
    rank = lambda share: times[min(len(times) - 1, int(share * len(times)))]
    return f"after p50 {rank(0.5):.1f} p99 {rank(0.99):.1f} most {times[-1]:.1f} ms in {len(times)} rounds"


def revoke(path, port, tunnels, rounds):
    sender, endpoint = bed(path)
    silent, took, moved, late, open, left = [], [], 0, 0, 0, 0
    for _ in range(int(rounds)):
        ground = Bed(path, port, endpoint, int(tunnels))
        before = ground.facts()
        time.sleep(0.1)
        owner = unix(path)
        watch = os.pipe()
        watcher = fork(silence, ground, watch[1])
        begin = time.monotonic()
        status, result, _ = ask(owner, "DELETE", f"/v1/grants/{ground.grant}")
        took.append(time.monotonic() - begin)
        there = ground.facts()
        silent.append(struct.unpack("d", os.read(watch[0], 8))[0] - begin)
        os.waitpid(watcher, 0)
        os.close(watch[0]), os.close(watch[1])
        time.sleep(0.05)
        assert status == 200 and result["ended"] == [ground.grant], result
        moved += sum(now[1] - then[1] for now, then in zip(there, before))
        after = ground.facts()
        late += sum(now[1] - then[1] for now, then in zip(after, there))
        open += sum(state != CLOSED for state, _ in after)
        left += len(ask(unix(path), "GET", "/v1/tunnels")[1]["tunnels"])
        ground.clear()
    os.kill(sender, signal.SIGKILL)
    print(f"{late} bytes late, {open} connections open, {left} tunnels left")
    print(f"busy: {moved >> 20} MiB")
    print(f"silent {figures(silent)}")
    print(f"answered {figures(took)}")


def expire(path, port, tunnels, lifetime=4):
    sender, endpoint = bed(path)
    ground = Bed(path, port, endpoint, int(tunnels), grantLifetimeSeconds=lifetime)
    due = [then + lifetime for then in ground.granted]
    early = False
    while any(state != CLOSED for state, _ in ground.facts()):
        early = False
        if time.monotonic() > due[1] + 5:
            break
        if time.monotonic() < due[0] - 0.1 and any(state == CLOSED for state, _ in ground.facts()):
            early = True
            break
        time.sleep(0.005)
    over = time.monotonic()
    there = ground.facts()
    time.sleep(0.2)
    late = sum(now[1] - then[1] for now, then in zip(ground.facts(), there))
    os.kill(sender, signal.SIGKILL)
    isRight = not early and due[0] - 0.1 < over < due[1] + 1 and late == 0
    print("in time" if isRight else f"WRONG early {early}, {over - due[0]:+.2f} s, {late} bytes")
    print(f"figures: all cut {over - due[0]:+.3f} s from then")
    ground.clear()


globals()[sys.argv[1]](*sys.argv[2:])
