import Model

/// What Avahi told about services so far, what to ask it next, and what came out of it.
///
/// Without I/O: facts go in, `takeActions` says which objects to make and free, `takeEvents` says what the registry is
/// told. avahi-daemon grants a client 1,024 objects and answers slowly when all are asked for at once, hence the limits.
struct ServiceTable: Sendable {
    typealias Instant = ContinuousClock.Instant

    struct Limits: Sendable {
        /// Resolvers that have not answered yet.
        var window = 48
        /// Resolvers that are kept, so that a change of port or TXT and a silent death are heard. Beyond it a service is
        /// asked for again every `restingTime`.
        var kept = 360
        /// Hosts whose every address is followed; each costs two browsers. Beyond it one address is enough.
        var hosts = 224
        /// Split adverts; each costs two browsers.
        var splits = 32
        /// Services in all, so that a flood of names costs bounded memory.
        var services = 2_048
    }

    enum Action: Hashable, Sendable {
        case resolve(ServiceKey, wantsAddress: Bool)
        case stopResolving(ServiceKey)
        case follow(HostKey)
        case unfollow(HostKey)
        case followRecords(ServiceKey)
        case unfollowRecords(ServiceKey)
        /// Nothing to do but to tell whoever reads the log.
        case refuse(ServiceKey, reason: String)
    }

    struct Counts: Hashable, Sendable {
        var found = 0
        var resolved = 0
        var failed = 0
        var refused = 0
    }

    enum Resolution: Hashable, Sendable {
        case queued
        case trying(isKept: Bool)
        case kept
        /// Its resolver is freed; `resting` knows when it is asked for again.
        case resting
        /// A split advert: record browsers stand in for the resolver.
        case records
    }

    struct Instance: Sendable {
        var resolution: Resolution
        /// Failures in a row.
        var attempts = 0
        var details: ServiceDetails?
        var host: HostKey?
        var listed: Sighting?
        var refusal: String?
        var isOurOwn = false
        var location: ServiceRecord?
        var txt: TXTRecord?
    }

    struct Host: Sendable {
        /// With the transport that told it, because each transport tells and withdraws by itself.
        var addresses: Set<Told> = []
        var users: Set<ServiceKey> = []

        struct Told: Hashable, Sendable {
            let transport: CInt
            let address: NetworkAddress
        }
    }

    static let restingTime = Duration.seconds(60)
    /// How long after the first, second… failure in a row a service is asked for again; the last one goes on for ever.
    static let retryTimes: [Duration] = [.seconds(1), .seconds(5), .seconds(15), .seconds(60)]

    let limits: Limits
    var instances: [ServiceKey: Instance] = [:]
    var hosts: [HostKey: Host] = [:]
    private var own = OwnServices()
    private var queue: [ServiceKey] = []
    private var resting: [ServiceKey: Instant] = [:]
    private var trying = 0
    private var kept = 0
    private var splits = 0
    /// Beyond a limit, since the start.
    private var turnedAway = 0
    private var dirty: Set<ServiceKey> = []
    private var actions: [Action] = []
    private var events: [SightingEvent] = []

    init(limits: Limits = Limits()) { self.limits = limits }

    /// When `advance` has something to do.
    var deadline: Instant? { resting.values.min() }

    /// Found, and neither listed, refused nor tried in vain yet.
    var unresolved: Int {
        instances.values.count { $0.listed == nil && $0.refusal == nil && $0.attempts == 0 && !$0.isOurOwn }
    }

    var counts: Counts {
        var counts = Counts(refused: turnedAway)
        for instance in instances.values {
            counts.found += 1
            if instance.listed != nil { counts.resolved += 1 }
            if instance.refusal != nil { counts.refused += 1 }
            if instance.listed == nil, instance.refusal == nil, instance.attempts > 0 { counts.failed += 1 }
        }
        return counts
    }

    /// Whether somebody else has a service of that name.
    func isTaken(_ name: String, _ type: ServiceType) -> Bool {
        instances.contains { key, instance in
            !instance.isOurOwn && key.name.elementsEqual(name.utf8) && key.type.lowercased() == type.text
        }
    }

    /// What is ours from now on.
    mutating func own(_ own: OwnServices) {
        guard own != self.own else { return }
        dirty.formUnion(instances.keys.filter { own.names($0) || self.own.names($0) })
        self.own = own
    }

    /// A service browser saw an instance.
    mutating func found(_ key: ServiceKey) {
        guard admits(key) else { return }
        instances[key] = Instance(resolution: .queued)
        queue.append(key)
    }

    /// A record browser saw an instance whose name is cut at its dots.
    mutating func foundSplit(_ key: ServiceKey) {
        guard admits(key) else { return }
        guard splits < limits.splits else {
            turnedAway += 1
            actions.append(.refuse(key, reason: "more than \(limits.splits) malformed adverts at once"))
            return
        }
        splits += 1
        instances[key] = Instance(resolution: .records)
        actions.append(.followRecords(key))
    }

    /// A goodbye, or the end of a record's life.
    mutating func disappeared(_ key: ServiceKey) {
        guard let instance = instances.removeValue(forKey: key) else { return }
        switch instance.resolution {
        case .queued: queue.removeAll { $0 == key }
        case .trying, .kept: stopResolving(key, instance.resolution)
        case .resting: resting[key] = nil
        case .records:
            splits -= 1
            actions.append(.unfollowRecords(key))
        }
        leaveHost(instance.host, key)
        dirty.remove(key)
        if let listed = instance.listed { events.append(.lost(listed.id)) }
    }

    /// A resolver answered, for the first time or because something changed.
    mutating func resolved(_ key: ServiceKey, _ details: ServiceDetails, now: Instant) {
        guard var instance = instances[key] else { return }
        switch instance.resolution {
        case .trying(isKept: true):
            trying -= 1
            instance.resolution = .kept
        case .trying(isKept: false):
            stopResolving(key, instance.resolution)
            instance.resolution = .resting
            resting[key] = now + Self.restingTime
        case .kept, .records: break
        case .queued, .resting: return
        }
        instance.attempts = 0
        instances[key] = instance
        settle(key, details)
    }

    /// A resolver could not be made, got no answer within 5 s, or lost what it had.
    ///
    /// One failure alone does not end a sighting: libavahi may hold an address that is out of date until it is asked
    /// anew (avahi/avahi#95). The second in a row does.
    mutating func unresolved(_ key: ServiceKey, now: Instant) {
        guard var instance = instances[key] else { return }
        switch instance.resolution {
        case .trying, .kept: stopResolving(key, instance.resolution)
        case .queued, .resting, .records: return
        }
        resting[key] = now + Self.retryTimes[min(instance.attempts, Self.retryTimes.count - 1)]
        instance.attempts += 1
        instance.resolution = .resting
        instances[key] = instance
        if instance.attempts > 1 { settle(key, nil) }
    }

    /// An SRV record of a split advert came or went.
    mutating func location(_ key: ServiceKey, _ record: ServiceRecord, isThere: Bool) {
        guard var instance = instances[key], instance.resolution == .records else { return }
        // Of two records, the old one leaves after the new one came.
        if !isThere, instance.location != record { return }
        instance.location = isThere ? record : nil
        instances[key] = instance
        settle(key, instance.recordDetails)
    }

    /// A TXT record of a split advert came or went.
    mutating func text(_ key: ServiceKey, _ txt: TXTRecord, isThere: Bool) {
        guard var instance = instances[key], instance.resolution == .records else { return }
        if !isThere, instance.txt != txt { return }
        instance.txt = isThere ? txt : nil
        instances[key] = instance
        settle(key, instance.recordDetails)
    }

    /// An A or AAAA record came or went.
    mutating func address(_ key: HostKey, _ address: NetworkAddress, transport: CInt, isThere: Bool) {
        guard var host = hosts[key] else { return }
        let told = Host.Told(transport: transport, address: address)
        if isThere { host.addresses.insert(told) } else { host.addresses.remove(told) }
        hosts[key] = host
        dirty.formUnion(host.users)
    }

    /// Asks again for what rested long enough, and for as many of the queue as the window lets through.
    mutating func advance(now: Instant) {
        for (key, moment) in resting where moment <= now {
            resting[key] = nil
            instances[key]?.resolution = .queued
            queue.append(key)
        }
        let room = min(limits.window - trying, queue.count)
        guard room > 0 else { return }
        for key in queue.prefix(room) {
            let isKept = kept < limits.kept
            trying += 1
            if isKept { kept += 1 }
            instances[key]?.resolution = .trying(isKept: isKept)
            actions.append(.resolve(key, wantsAddress: hosts.count >= limits.hosts))
        }
        queue.removeFirst(room)
    }

    mutating func takeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    /// What changed since the last call: at most one event for each sighting that still stands.
    mutating func takeEvents(seenFrom local: LocalInterfaces) -> [SightingEvent] {
        for key in dirty { judge(key, seenFrom: local) }
        dirty = []
        defer { events = [] }
        return events
    }

    var isDirty: Bool { !dirty.isEmpty || !events.isEmpty }

    // What nobody else calls.

    private mutating func admits(_ key: ServiceKey) -> Bool {
        guard instances[key] == nil else { return false }
        guard instances.count < limits.services else {
            turnedAway += 1
            actions.append(.refuse(key, reason: "more than \(limits.services) services at once"))
            return false
        }
        return true
    }

    private mutating func stopResolving(_ key: ServiceKey, _ resolution: Resolution) {
        if case .trying = resolution { trying -= 1 }
        if resolution == .kept || resolution == .trying(isKept: true) { kept -= 1 }
        actions.append(.stopResolving(key))
    }

    private mutating func settle(_ key: ServiceKey, _ details: ServiceDetails?) {
        guard var instance = instances[key] else { return }
        instance.details = details
        let host = details.map { HostKey(interface: key.interface, name: $0.host) }
        if host != instance.host {
            leaveHost(instance.host, key)
            instance.host = host.flatMap { joinHost($0, key) ? $0 : nil }
        }
        instances[key] = instance
        dirty.insert(key)
    }

    private mutating func joinHost(_ key: HostKey, _ user: ServiceKey) -> Bool {
        if hosts[key] == nil {
            guard hosts.count < limits.hosts else { return false }
            hosts[key] = Host()
            actions.append(.follow(key))
        }
        hosts[key]?.users.insert(user)
        return true
    }

    private mutating func leaveHost(_ key: HostKey?, _ user: ServiceKey) {
        guard let key, var host = hosts[key] else { return }
        host.users.remove(user)
        hosts[key] = host.users.isEmpty ? nil : host
        if host.users.isEmpty { actions.append(.unfollow(key)) }
    }

    private mutating func judge(_ key: ServiceKey, seenFrom local: LocalInterfaces) {
        guard var instance = instances[key] else { return }
        var addresses = instance.host.flatMap { hosts[$0] }.map { $0.addresses.map(\.address) } ?? []
        if addresses.isEmpty, let only = instance.details?.address { addresses = [only] }
        instance.isOurOwn = instance.details.map { own.contains(key, at: $0) } ?? false
        let (sighting, refusal) = instance.isOurOwn ? (nil, nil) : verdict(key, instance.details, addresses, local)
        if let refusal, refusal != instance.refusal { actions.append(.refuse(key, reason: refusal)) }
        instance.refusal = refusal
        if let sighting {
            if sighting != instance.listed { events.append(.seen(sighting)) }
        } else if let listed = instance.listed {
            events.append(.lost(listed.id))
        }
        instance.listed = sighting
        instances[key] = instance
    }

    private func verdict(
        _ key: ServiceKey,
        _ details: ServiceDetails?,
        _ addresses: [NetworkAddress],
        _ local: LocalInterfaces
    ) -> (Sighting?, refusal: String?) {
        guard let details else { return (nil, nil) }
        if details.port == 0 { return (nil, "it advertises port 0") }
        if addresses.isEmpty { return (nil, nil) }
        let sighting = Sighting(of: key, details, at: addresses, seenFrom: local)
        return (sighting, sighting?.blocked)
    }
}

extension ServiceTable.Instance {
    /// Both records or nothing: RFC 6763, section 6.1, demands a TXT record of every service.
    fileprivate var recordDetails: ServiceDetails? {
        guard let location, let txt else { return nil }
        return ServiceDetails(host: location.target.escaped, port: location.port, txt: txt)
    }
}
