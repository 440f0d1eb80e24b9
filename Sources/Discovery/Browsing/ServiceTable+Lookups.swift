import Model

/// Scheduling of lookups: the queue, the window of concurrent lookups, and repeated lookups.
extension ServiceTable {
    /// Schedules a new lookup of the services at `routes`, because an address there does not respond. The services may
    /// have moved.
    mutating func resolveAgain(at routes: Set<Route>, now: Instant) {
        for (key, instance) in instances where instance.listed.map({ !routes.isDisjoint(with: $0.routes) }) ?? false {
            switch instance.resolution {
            case .watching: refreshAt[key] = now
            case .idle: retryAt[key] = now
            case .queued, .trying, .records: break
            }
        }
    }

    /// Queues repeated lookups that are due and starts lookups until the window is full.
    mutating func advance(now: Instant) {
        for key in retryAt.due(at: now) { enqueue(key) }
        for key in refreshAt.due(at: now) where instances[key]?.resolution == .watching {
            stopResolving(key, .watching)
            enqueue(key)
        }
        if queue.count > 2 * counter.waiting + 64 { queue.retain { instances[$0]?.resolution == .queued } }
        guard counter.waiting > 0 else { return }
        let timing = timing
        for key in fast.due(at: now) {
            if timing.isCrowded, instances[key]?.isNew == true { unresolved(key, now: now) } else { slow[key] = now }
        }
        while fast.count < (timing.isCrowded ? limits.crowdedWindow : limits.window), let key = queue.pop() {
            // The service has disappeared, or an older queue entry already started its lookup.
            guard var instance = instances[key], instance.resolution == .queued else { continue }
            let keepsResolver = openResolvers < limits.openResolvers
            if keepsResolver { openResolvers += 1 }
            fast[key] = now + timing.timeout(isFirst: instance.isNew)
            instance.resolution = .trying(keepsResolver: keepsResolver)
            put(instance, at: key)
            actions.append(.resolve(key, wantsAddress: instance.needsAddress || machines.isFull))
        }
        while slow.count > limits.slow, let key = slow.first { unresolved(key, now: now) }
    }

    private mutating func enqueue(_ key: ServiceKey) {
        guard var instance = instances[key] else { return }
        instance.resolution = .queued
        put(instance, at: key)
        queue.append(key, isFirst: false)
    }

    /// Makes room for a new service when `limits.services` is reached.
    ///
    /// Drops a failing service that is not listed, else the oldest queued lookup of the longest lane. In a flood, most
    /// services are of these two kinds.
    mutating func makeRoom() {
        guard instances.count >= limits.services else { return }
        var victim = retryAt.key { instances[$0].map { $0.listed == nil && $0.attempts > 0 } ?? false }
        while victim == nil, let key = queue.popFromLongestLane() {
            if instances[key]?.resolution == .queued { victim = key }
        }
        guard let victim = victim ?? retryAt.first ?? instances.keys.first else { return }
        disappeared(victim)
        drop(limit: "\(limits.services) services")
    }

    /// Counts a dropped service. Logs when the count reaches a power of two, so that a flood does not fill the log.
    mutating func drop(limit: String) {
        if counter.drop() { actions.append(.drop(counter.counts.dropped, limit: limit)) }
    }

    mutating func stopResolving(_ key: ServiceKey, _ resolution: ServiceInstance.Resolution) {
        (fast[key], slow[key], refreshAt[key]) = (nil, nil, nil)
        if resolution == .watching || resolution == .trying(keepsResolver: true) { openResolvers -= 1 }
        actions.append(.stopResolving(key))
    }

    /// Looks up a service again with an address, if its machine cannot be browsed.
    ///
    /// This happens when the limit of browsed machines was reached while the lookup was running.
    mutating func resolveAddress(_ key: ServiceKey) {
        guard var instance = instances[key], let machine = instance.machine, machines.isUnfollowed(machine),
            instance.details?.address == nil, !instance.needsAddress
        else { return }
        switch instance.resolution {
        case .watching: stopResolving(key, .watching)
        case .idle: retryAt[key] = nil
        case .queued, .trying, .records: return
        }
        instance.needsAddress = true
        put(instance, at: key)
        enqueue(key)
    }
}
