"""Compares the broker with what the campaign started."""
import collections
import http.client
import time

from broker import Answer

# An answer of the owner's list after this part of the limit is a violation, unless the broker or its disk was stopped on purpose.
LIST_SHARE = 0.2


class Oracle:
    def __init__(self, world, traffic, limit):
        self.world, self.traffic, self.limit, self.records = world, traffic, limit, world.records
        self.settled = collections.defaultdict(list)
        self.checked_calls, self.timed = set(), 0
        self.footprints = []

    def check(self, step):
        """Waits until the list equals reality and every way leads to its target, and then checks all records."""
        listed = self.settle("the list is wrong", self.list_differences, self.limit)
        self.settle("tokens cannot be stored", self.without_token, self.limit)
        # What clients reach is compared only after the list, because a token is needed for each launch.
        stored = time.monotonic()
        reached = self.settle("clients do not reach", lambda: self.unreached(stored), 2 * self.limit)
        self.settled[step].append((listed, reached))
        self.check_kept()
        self.check_calls()
        self.check_times()
        self.footprints.append((time.monotonic(), self.world.broker.starts, self.world.broker.footprint()))

    def settle(self, what, differences, limit):
        """Returns the seconds until there is no difference."""
        start = time.monotonic()
        while True:
            try:
                found = differences()
            except (OSError, http.client.HTTPException, Answer) as error:
                found = [f"the broker does not answer: {error!r}"]
            seconds = time.monotonic() - start
            if not found:
                if seconds > limit:
                    self.records.violate(f"{what} for {seconds:.1f} s instead of {limit} s: {self.last}")
                return seconds
            self.last = found
            if seconds > max(limit, 30):
                self.records.violate(f"{what}: {found}")
                return seconds
            time.sleep(0.1)

    def list_differences(self):
        world, found = self.world, []
        endpoints = world.broker.request("GET", "/v1/endpoints", timeout=5)["endpoints"]
        by_id = {endpoint["id"]: endpoint for endpoint in endpoints}
        for app in world.apps:
            entry, own = world.find(app, endpoints), by_id.get(app.id)
            if own is None:
                found.append(f"{app.id} is gone")
            elif app.is_reachable and not (own["state"] == "online" and any(world.leads(route, app) for route in own["routes"])):
                found.append(f"{app.id} is {own['state']} at {[route.get('port') for route in own['routes']]}, not online at {app.port}")
            elif app.is_reachable and entry is not own and entry["state"] == "online":
                found.append(f"{app.bundle} has the ID {entry['id']} instead of {app.id}")
            elif not app.is_running and own["state"] == "online":
                found.append(f"{app.id} is online and does not run")
            elif app.place.is_phone and not app.place.is_attached and own["state"] == "online":
                found.append(f"{app.id} is online on an unplugged phone")
        known = {app.id for app in world.apps}
        # An advert that nobody approved is only shown.
        found += [f"{id} is online and does not exist" for id, endpoint in by_id.items()
                  if id not in known and endpoint["state"] == "online" and endpoint["approval"] == "approved"]
        devices = {device["udid"] for device in world.broker.request("GET", "/v1/devices", timeout=5)["devices"] if "state" not in device}
        attached = {phone.udid for phone in world.phones if phone.is_attached}
        if devices != attached:
            found.append(f"phones {sorted(devices ^ attached)} are listed and absent, or the reverse")
        return found

    def without_token(self):
        return [app.bundle for app in self.world.apps if app.is_reachable and not self.world.give_token(app)]

    def unreached(self, since):
        traffic = self.traffic
        for app in self.world.apps:
            # After an interruption the broker cannot know whether the launch is still the same.
            if app.is_reachable and "token-required" in (traffic.last_texts.get(app.bundle) or ""):
                app.known, traffic.last_texts[app.bundle] = None, None
                self.records.count("tokens given again")
        self.without_token()
        found = [f"{app.bundle}, {traffic.last_texts.get(app.bundle)}" for app in self.world.apps
                 if app.is_reachable and traffic.last_calls.get(app.bundle, 0) < since]
        return found + [phone.name for phone in self.world.phones if phone.is_attached and traffic.last_streams.get(phone.name, 0) < since]

    def check_kept(self):
        """Every tunnel, grant and approval is still there, and nothing else."""
        world = self.world
        tunnels = {tunnel["id"] for tunnel in world.broker.request("GET", "/v1/tunnels")["tunnels"]}
        grants = {grant["id"] for grant in world.broker.request("GET", "/v1/grants")["grants"] if "endReason" not in grant}
        approvals = {approval["endpoint"] for approval in world.broker.request("GET", "/v1/approvals")["approvals"]}
        for name, kept, expected in (("tunnels", tunnels, set(world.tunnels)), ("grants", grants, set(world.grants)),
                                     ("approvals", approvals, world.approvals)):
            if kept != expected:
                self.records.violate(f"{name}: {sorted(expected - kept)} lost, {sorted(kept - expected)} appeared")

    def check_calls(self):
        """No call was delivered twice, and each answered one was delivered to its app."""
        for label, call in list(self.traffic.calls.items()):
            if label in self.checked_calls or not call["end"] or time.monotonic() - call["end"] < 1:
                continue
            deliveries = self.records.deliveries.get(label, [])
            if len(deliveries) > 1:
                self.records.violate(f"the call {label} was delivered {len(deliveries)} times: {deliveries}")
            if call["ok"] and not deliveries:
                self.records.violate(f"the call {label} was answered, but no app got it")
            if any(bundle != call["app"] for _, bundle, _ in deliveries):
                self.records.violate(f"the call {label} reached {deliveries}")
            self.checked_calls.add(label)

    def check_times(self):
        quiet = self.traffic.quiet
        for start, seconds in self.traffic.list_times[self.timed:]:
            if seconds > LIST_SHARE * self.limit and not any(start < end and start + seconds > begin for begin, end in quiet):
                self.records.violate(f"the owner's list took {seconds:.2f} s")
        self.timed = len(self.traffic.list_times)

    def check_audit(self):
        """The log verifies, and has each grant and each end of a grant once."""
        verification = self.world.broker.request("GET", "/v1/audit/verify", timeout=60)
        if "firstInvalidEntry" in verification:
            self.records.violate(f"the audit log is invalid: {verification}")
        events = self.world.broker.audit()
        begun = collections.Counter(event.get("grant") for event in events if event["action"] == "redeemed")
        ended = collections.Counter(id for event in events if event["action"] == "revoked" for id in event.get("ended", ()))
        for grant in [*self.world.grants, *self.world.ended_grants]:
            if begun[grant] != 1:
                self.records.violate(f"the audit log has the grant {grant} {begun[grant]} times")
            if ended[grant] != (grant in self.world.ended_grants):
                self.records.violate(f"the audit log has the end of the grant {grant} {ended[grant]} times")

    def check_flat(self, slack):
        """Descriptors, threads and memory of the broker's last run do not grow over its second half."""
        points = [(at, use) for at, starts, use in self.footprints if starts == self.world.broker.starts and use]
        if len(points) < 8:
            return
        half = points[len(points) // 2:]
        for index, (name, allowed) in enumerate((("descriptors", 30), ("threads", 4), ("KiB", slack))):
            first, last = half[0][1][index], half[-1][1][index]
            if last > first + allowed:
                self.records.violate(f"the broker has {last} {name} after {first} in the second half of its run")

