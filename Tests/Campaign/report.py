"""The figures of a campaign."""


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0


def print_report(options, world, oracle, traffic):
    counters = world.records.counters
    done = {name.removeprefix("step "): count for name, count in counters.items() if name.startswith("step ")}
    print(f"\nseed {options.seed}: {sum(done.values())} steps")
    print(f"{'step':20} {'count':>5}  list p50   max  clients p50   max (seconds)")
    for name in sorted(oracle.settled):
        lists, clients = zip(*oracle.settled[name])
        print(f"{name:20} {done.get(name, 1):5}  {percentile(lists, 0.5):8.2f} {max(lists):5.2f}  {percentile(clients, 0.5):11.2f} "
              f"{max(clients):5.2f}")
    for name in sorted(counters):
        if not name.startswith("step "):
            print(f"{name}: {counters[name]}")
    times = [seconds * 1000 for start, seconds in traffic.list_times
             if not any(start < end and start + seconds > begin for begin, end in traffic.quiet)]
    print(f"owner's list: {len(times)}, p50 {percentile(times, 0.5):.0f} ms, p99 {percentile(times, 0.99):.0f} ms, "
          f"max {max(times, default=0):.0f} ms")
    uses = [use for _, _, use in oracle.footprints if use]
    for index, name in enumerate(("descriptors", "threads", "KiB")):
        print(f"broker's {name}: {min(use[index] for use in uses)} to {max(use[index] for use in uses)}" if uses else "")
    print(f"violations: {len(world.records.violations)}")
    for _, text in world.records.violations:
        print(f"  VIOLATION {text}")
