import Model

/// Which lookup is when: the queue, the window, and what is asked for again.
extension ServiceTable {
    /// One of these addresses does not answer: its service may be elsewhere by now.
    mutating func lookAgain(at routes: Set<Route>, now: Instant) {
        for (key, instance) in instances where instance.listed.map({ !routes.isDisjoint(with: $0.routes) }) ?? false {
            switch instance.resolution {
            case .kept: looks[key] = now
            case .resting: resting[key] = now
            case .queued, .trying, .records: break
            }
        }
    }

    /// Asks again for what rested long enough, and for as many of the queue as the window lets through.
    mutating func advance(now: Instant) {
        for key in resting.due(at: now) { enqueue(key) }
        for key in looks.due(at: now) where instances[key]?.resolution == .kept {
            stopResolving(key, .kept)
            enqueue(key)
        }
        if queue.count > 2 * tally.waiting + 64 { queue.keep { instances[$0]?.resolution == .queued } }
        guard tally.waiting > 0 else { return }
        let isCrowded = tally.counts.failed > Self.patientCrowd
        for key in fast.due(at: now) {
            if isCrowded, instances[key]?.isNew == true { unresolved(key, now: now) } else { slow[key] = now }
        }
        while fast.count < (isCrowded ? limits.crowdedWindow : limits.window), let key = queue.take() {
            // Gone meanwhile, or asked for under an older entry.
            guard var instance = instances[key], instance.resolution == .queued else { continue }
            let isKept = kept < limits.kept
            if isKept { kept += 1 }
            fast[key] =
                now + (!isCrowded ? Self.patience : instance.isNew ? Self.glance : Self.crowdedPatience)
            instance.resolution = .trying(isKept: isKept)
            put(instance, at: key)
            actions.append(.resolve(key, wantsAddress: instance.needsAddress || followed >= limits.hosts))
        }
        while slow.count > limits.slow, let key = slow.first { unresolved(key, now: now) }
    }

    private mutating func enqueue(_ key: ServiceKey) {
        guard var instance = instances[key] else { return }
        instance.resolution = .queued
        put(instance, at: key)
        queue.append(key, isFirst: false)
    }

    /// At the limit a new name is worth more than one that fails, and than the oldest of a crowd that waits: of a flood the
    /// latter two are the most.
    mutating func makeRoom() {
        guard instances.count >= limits.services else { return }
        var victim = resting.key { instances[$0].map { $0.listed == nil && $0.attempts > 0 } ?? false }
        while victim == nil, let key = queue.takeFromLongest() {
            if instances[key]?.resolution == .queued { victim = key }
        }
        guard let victim = victim ?? resting.first ?? instances.keys.first else { return }
        disappeared(victim)
        drop(limit: "\(limits.services) services")
    }

    /// Told when the number doubles, so that a flood does not fill the log.
    mutating func drop(limit: String) {
        tally.dropped += 1
        if tally.dropped.nonzeroBitCount == 1 { actions.append(.drop(tally.dropped, limit: limit)) }
    }

    mutating func stopResolving(_ key: ServiceKey, _ resolution: Resolution) {
        (fast[key], slow[key], looks[key]) = (nil, nil, nil)
        if resolution == .kept || resolution == .trying(isKept: true) { kept -= 1 }
        actions.append(.stopResolving(key))
    }

    /// The lookup began while hosts could still be followed, and there was no place left for its host when it ended.
    mutating func askForAddress(_ key: ServiceKey) {
        guard var instance = instances[key], let host = instance.host, hosts[host]?.isFollowed == false,
            instance.details?.address == nil, !instance.needsAddress
        else { return }
        switch instance.resolution {
        case .kept: stopResolving(key, .kept)
        case .resting: resting[key] = nil
        case .queued, .trying, .records: return
        }
        instance.needsAddress = true
        put(instance, at: key)
        enqueue(key)
    }
}

extension ServiceTable {
    struct Counts: Hashable, Sendable {
        var found = 0
        var resolved = 0
        var failed = 0
        var refused = 0
        /// Services that a limit kept out since the connection began.
        var dropped = 0
    }

    /// How many services are in which state, kept up to date instead of counted anew.
    struct Tally: Sendable {
        private(set) var counts = Counts()
        /// Found, and neither listed, refused nor tried in vain yet.
        private(set) var unresolved = 0
        /// For their lookup.
        private(set) var waiting = 0
        var dropped: Int {
            get { counts.dropped }
            set { counts.dropped = newValue }
        }

        mutating func add(_ instance: Instance) { count(instance, 1) }
        mutating func remove(_ instance: Instance) { count(instance, -1) }

        private mutating func count(_ instance: Instance, _ step: Int) {
            counts.found += step
            if instance.resolution == .queued { waiting += step }
            if instance.listed != nil { counts.resolved += step }
            if instance.refusal != nil { counts.refused += step }
            guard instance.listed == nil, instance.refusal == nil else { return }
            if instance.attempts > 0 {
                counts.failed += step
            } else if !instance.isOurOwn {
                unresolved += step
            }
        }
    }
}
