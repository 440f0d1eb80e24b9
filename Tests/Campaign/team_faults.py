"""Faults of the brokers and of etcd, and the oracle of a team."""
import signal
import threading
import time

from faults import hold
from oracle import Oracle
from team import FAILURES


def pick(world, choice):
    return choice.choice(world.hosts)


def kill_host(world, traffic, choice):
    host = pick(world, choice)
    host.kill()
    hold(choice)
    host.start()


def restart_host(world, traffic, choice):
    host = pick(world, choice)
    if not host.stop():
        world.records.violate(f"{host.name} did not end within 10 s after SIGTERM")
    host.start()


def freeze_host(world, traffic, choice):
    host = pick(world, choice)
    host.program.freeze()
    time.sleep(choice.uniform(0.2, 5))
    host.program.thaw()


def kill_etcd(world, traffic, choice):
    """One server of three, or two, so that there is no quorum."""
    numbers = choice.sample(range(3), choice.choice([1, 1, 2]))
    for number in numbers:
        world.etcd.kill(number)
    hold(choice)
    for number in numbers:
        world.etcd.start(number)


def freeze_etcd(world, traffic, choice):
    programs = choice.sample(world.etcd.programs, choice.choice([1, 1, 2]))
    for program in programs:
        program.send_signal(signal.SIGSTOP)
    time.sleep(choice.uniform(0.2, 4))
    for program in programs:
        program.send_signal(signal.SIGCONT)


def relaunch_app(world, traffic, choice):
    app = choice.choice(world.apps)
    app.quit()
    hold(choice)
    app.launch()


def race_for_lease(world, traffic, choice):
    """Agents of all hosts take the lease of one app at once. Only calls of the holder are delivered until it ends."""
    app = choice.choice(world.apps)
    grants = [host.pair(["registry.read", "endpoint.call"]) for host in world.hosts]
    results, name = [None] * 3, f"race-{choice.getrandbits(32):x}"

    def take(number):
        try:
            spec = {"endpoint": world.id(app, number), "seconds": 30, "waitSeconds": 2}
            results[number] = world.hosts[number].request("POST", "/v1/leases", spec, grants[number][1])["id"]
        except FAILURES:
            world.records.count("leases refused")
    threads = [threading.Thread(target=take, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    holders = [number for number in range(3) if results[number]]
    world.records.count("leases taken", len(holders))
    if len(holders) > 1:
        world.records.violate(f"{len(holders)} agents hold the lease of {app.name}: {results}")
    for number in range(3):
        if holders and number not in holders:
            try:
                traffic.call(number, app, f"{name}-{number}")
            except FAILURES:
                pass
            if world.records.deliveries.get(f"{name}-{number}"):
                world.records.violate(f"lab{number + 1} called {app.name} during the lease of lab{holders[0] + 1}")
    for number in holders:
        world.hosts[number].request("DELETE", f"/v1/leases/{results[number]}", token=grants[number][1])
    for host, (grant, _) in zip(world.hosts, grants):
        host.request("DELETE", f"/v1/grants/{grant}")


TABLE = {kill_host: 4, restart_host: 3, freeze_host: 3, kill_etcd: 4, freeze_etcd: 3, relaunch_app: 4, race_for_lease: 8}


class TeamOracle(Oracle):
    def check(self, step):
        listed = self.settle("the lists are wrong", self.list_differences, 2 * self.limit)
        stored = time.monotonic()
        reached = self.settle("clients do not reach", lambda: self.unreached(stored), 2 * self.limit)
        self.settled[step].append((listed, reached))
        self.check_calls()
        self.check_kept()
        self.footprints += [(time.monotonic(), host.starts, host.footprint()) for host in self.world.hosts]

    def list_differences(self):
        found = []
        for number, host in enumerate(self.world.hosts):
            entries = {endpoint["id"]: endpoint for endpoint in host.request("GET", "/v1/endpoints", timeout=5)["endpoints"]}
            expected = {self.world.id(app, number) for app in self.world.apps}
            if set(entries) != expected:
                found.append(f"{host.name}: {sorted(expected - set(entries))} lost, {sorted(set(entries) - expected)} appeared")
            found += [f"{host.name}: {id} is {entry['state']}" for id, entry in entries.items() if entry["state"] != "online"]
            found += [f"{host.name}: {id} is stale" for id, entry in entries.items() if "staleSince" in entry.get("host", {})]
        return found

    def unreached(self, since):
        return [f"{app.name} from lab{host + 1}" for host in range(3) for app in self.world.apps
                if self.traffic.last.get((host, app.name), 0) < since]

    def check_kept(self):
        for host, grants in zip(self.world.hosts, self.world.grants):
            kept = {grant["id"] for grant in host.request("GET", "/v1/grants")["grants"] if "endReason" not in grant}
            if kept != {id for id, _ in grants.values()}:
                self.records.violate(f"{host.name} has the grants {kept} instead of {grants}")

    def check_audit(self):
        for host in self.world.hosts:
            verification = host.request("GET", "/v1/audit/verify", timeout=60)
            if "firstInvalidEntry" in verification:
                self.records.violate(f"the audit log of {host.name} is invalid: {verification}")

    def check_flat(self, slack):
        pass
