"""Acts of owners, agents and strangers: leases, grants and approvals that end in the middle, lies, and floods."""
import contextlib
import http.client
import socket
import sys
import threading
import time

from broker import Answer
from programs import SUPPORT, Program
from traffic import call_tool


FAILURES = (Answer, OSError, http.client.HTTPException, ValueError, RuntimeError)


def deliveries_after(world, labels, boundary):
    return [(label, at) for label in labels for at, *_ in world.records.deliveries.get(label, []) if at > boundary]


def call_all(world, app, token, labels, seconds=0):
    """Starts a call for each label."""
    def call(label):
        with contextlib.suppress(*FAILURES):
            call_tool(world.broker.port, app.id, token, "wait", {"label": label, "seconds": seconds})
    threads = [threading.Thread(target=call, args=(label,), daemon=True) for label in labels]
    for thread in threads:
        thread.start()
    return threads


def choose(world, choice):
    return choice.choice([app for app in world.apps if app.is_reachable] or [None])


def end_grant(world, traffic, choice):
    """A grant is revoked while its calls run and wait. None is delivered after the answer."""
    app = choose(world, choice)
    if not app:
        return
    grant, token = world.broker.pair(["registry.read", "endpoint.call", "secret.use"])
    name = f"end-{choice.getrandbits(32):x}"
    threads = call_all(world, app, token, [f"{name}-{n}" for n in range(12)], seconds=0.3)
    time.sleep(choice.uniform(0, 0.5))
    world.broker.request("DELETE", f"/v1/grants/{grant}")
    boundary = time.monotonic()
    world.ended_grants.append(grant)
    late = [f"{name}-late-{n}" for n in range(3)]
    threads += call_all(world, app, token, late)
    for thread in threads:
        thread.join(40)
    # The app writes a line after it has read the request.
    after = deliveries_after(world, [f"{name}-{n}" for n in range(12)], boundary + 0.5) + deliveries_after(world, late, 0)
    if after:
        world.records.violate(f"calls of the ended grant {grant} were delivered {after}, it ended at {boundary}")


def end_approval(world, traffic, choice):
    """The approval of an app on the network is withdrawn and given again."""
    app = next(app for app in world.apps if not app.place.is_phone)
    if not app.is_running:
        return
    world.broker.request("DELETE", f"/v1/endpoints/{app.id}/approval")
    app.closed_since = time.monotonic()
    time.sleep(choice.uniform(0.5, 3))
    app.closed_since, app.known = None, None
    world.approve(app)


def lease(world, traffic, choice):
    """Two agents take one lease at once. Only the holder's calls are delivered until it ends."""
    app = choose(world, choice)
    if not app:
        return
    pairs = [world.broker.pair(["registry.read", "endpoint.call", "secret.use"]) for _ in range(2)]
    results = [None, None]

    def take(index):
        with contextlib.suppress(OSError):
            try:
                spec = {"endpoint": app.id, "seconds": 30, "waitSeconds": 3}
                results[index] = world.broker.request("POST", "/v1/leases", spec, pairs[index][1])["id"]
            except Answer as answer:
                results[index] = answer
    threads = [threading.Thread(target=take, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    holders = [index for index in range(2) if isinstance(results[index], str)]
    if len(holders) != 1:
        world.records.violate(f"{len(holders)} agents hold the lease of {app.id}: {results}")
    else:
        holder, other = pairs[holders[0]][1], pairs[1 - holders[0]][1]
        name = f"lease-{choice.getrandbits(32):x}"
        with contextlib.suppress(*FAILURES):
            if call_tool(world.broker.port, app.id, holder, "wait", {"label": f"{name}-holder", "seconds": 0}):
                world.records.count("calls of lease holders answered")
        for thread in call_all(world, app, other, [f"{name}-{n}" for n in range(4)]):
            thread.join(40)
        if after := deliveries_after(world, [f"{name}-{n}" for n in range(4)], 0):
            world.records.violate(f"calls were delivered to {app.id} during the lease of another agent: {after}")
        if choice.random() < 0.5:
            world.broker.request("DELETE", f"/v1/leases/{results[holders[0]]}", token=holder)
    for grant, _ in pairs:
        world.broker.request("DELETE", f"/v1/grants/{grant}")
        world.ended_grants.append(grant)
    if world.broker.request("GET", "/v1/leases")["leases"]:
        world.records.violate("a lease outlives its grant")


def stall(world, traffic, choice):
    """An app stalls in large answers while another one is called."""
    app = choose(world, choice)
    if app:
        def call():
            with contextlib.suppress(Answer, OSError, ValueError):
                spec = {"tool": "wait", "arguments": {"stall": 6_000_000}, "timeoutSeconds": 2}
                world.broker.request("POST", f"/v1/endpoints/{app.id}/call", spec)
        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def lie(world, traffic, choice):
    """A machine of the network advertises itself as an app that has an approval, and as one on a cable."""
    app = choice.choice(world.apps)
    txt = [f"bundleId={app.bundle}", "version=3.2.0", "transport=streamable-http", "auth=session-token"]
    world.hostile.advertise(f"AppReveal-{app.bundle}", 49300, *txt, *([f"boot={app.boot}"] if app.boot else []))
    time.sleep(choice.uniform(0.5, 3))
    world.hostile.withdraw(f"AppReveal-{app.bundle}")


def lie_on_phone(world, traffic, choice):
    """A program on a free port of a phone says that it is another phone's app. It gets no token and no call."""
    from faults import free_ports
    phone = choice.choice([phone for phone in world.phones if phone.is_attached] or [None])
    others = [app for app in world.apps if app.place is not phone and app.is_running]
    if not phone or not others:
        return
    victim, port = choice.choice(others), free_ports(world, phone)[0]

    def see(at, line):
        if line.startswith(("token: ", "begin: ")):
            world.records.violate(f"the impostor of {victim.bundle} on {phone.name} got “{line}”")
    words = ["--mode", "ios", "--named", "--bundle", victim.bundle, "--boot", victim.boot, "--address", phone.address, "--port", str(port)]
    liar = Program(sys.executable, "-u", f"{SUPPORT}/sampleapp.py", *words, seen=see)
    liar.await_line("listening on ")
    time.sleep(choice.uniform(0.5, 4))
    liar.kill()


def flood_connections(world, traffic, choice):
    """Strangers open connections, some with half a request, and vanish."""
    connections = []
    for _ in range(choice.randrange(50, 200)):
        with contextlib.suppress(OSError):
            connection = socket.create_connection(("127.0.0.1", world.broker.port), 2)
            connection.sendall(choice.choice([b"", b"GET /v1/endpoints HTTP/1.1\r\nHost: localhost\r\n", b"\0" * 100]))
            connections.append(connection)
    time.sleep(choice.uniform(0.2, 1))
    for connection in connections:
        connection.close()


def flood_tunnels(world, traffic, choice):
    """Clients connect to a tunnel and vanish."""
    phone = choice.choice(world.phones)
    for _ in range(60):
        with contextlib.suppress(OSError):
            with socket.create_connection(("127.0.0.1", phone.port), 2) as connection:
                connection.sendall(b"500000 0 flood\n")


def flood_invites(world, traffic, choice):
    invites = []
    for _ in range(choice.randrange(20, 80)):
        with contextlib.suppress(Answer):
            spec = {"permissions": {"scopes": ["registry.read"], "selector": "all"}, "lifetimeSeconds": 60}
            invites.append(world.broker.request("POST", "/v1/invites", spec)["invite"]["id"])
    for invite in invites:
        world.broker.request("DELETE", f"/v1/invites/{invite}")


def flood_adverts(world, traffic, choice):
    """A machine advertises many apps, none of which anybody approved."""
    for number in range(12):
        bundle = f"com.flood.a{choice.getrandbits(24):x}"
        world.hostile.advertise(f"AppReveal-{bundle}", 49300, f"bundleId={bundle}")
    for name in [name for name in world.hostile.adverts if "com.flood" in name]:
        world.hostile.withdraw(name)


TABLE = {end_grant: 6, end_approval: 4, lease: 6, stall: 3, lie: 3, lie_on_phone: 4, flood_connections: 2, flood_tunnels: 2,
         flood_invites: 2, flood_adverts: 2}
