import Model

/// What Avahi told about services so far, what to ask it next, and what came out of it.
///
/// Without I/O: facts go in, `takeActions` says which objects to make and free, `takeEvents` says what the registry is
/// told. avahi-daemon grants a client 1,024 objects and answers slowly when all are asked for at once, hence the limits.
struct ServiceTable: Sendable {
    typealias Instant = ContinuousClock.Instant

    struct Limits: Sendable {
        /// Resolvers that may still answer soon.
        var window = 48
        /// The same while more than `patientCrowd` services fail.
        var crowdedWindow = 32
        /// Resolvers beside the window that have not answered within `patience`. The oldest is given up for the next one.
        var slow = 64
        /// Resolvers that are kept, so that a change of port or TXT and a silent death are heard. Beyond it a service is
        /// asked for again every `restingTime`.
        var kept = 288
        /// Hosts whose every address is followed; each costs two browsers. Beyond it one address is enough.
        var hosts = 224
        /// Split adverts; each costs two browsers, and two for its host.
        var splits = 32
        /// Services in all, so that a flood of names costs bounded memory.
        var services = 8_192
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
        /// The same for services that a limit keeps out, so many since the connection began.
        case drop(Int, limit: String)
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
        /// Its host is not followed, so that the resolver has to bring an address.
        var needsAddress = false
        /// Failures in a row.
        var attempts = 0
        var details: ResolvedService?
        var host: HostKey?
        var listed: Sighting?
        var refusal: String?
        var isOurOwn = false
        var location: SRVRecord?
        var txt: TXTRecord?

        /// Whether no lookup of it has ended yet.
        var isNew: Bool { attempts == 0 && details == nil }
    }

    struct Host: Sendable {
        /// Whether its address browsers are there.
        let isFollowed: Bool
        /// With the transport that told it, because each transport tells and withdraws by itself.
        var addresses: Set<Told> = []
        var users: Set<ServiceKey> = []

        struct Told: Hashable, Sendable {
            let transport: CInt
            let address: IPAddress
        }
    }

    static let restingTime = Duration.seconds(60)
    /// How long after the first, second… failure in a row a service is asked for again; the last one goes on for ever.
    static let retryTimes: [Duration] = [.seconds(1), .seconds(5), .seconds(15), .seconds(60)]
    /// So many failing services at most have these times; more of them share the lookups, each later.
    static let patientCrowd = 64
    /// How long after news a service is asked for once more. Avahi keeps a record that is less than a second old beside the
    /// one that replaces it (RFC 6762, section 10.2), and its resolvers then tell nothing of the new one.
    static let secondLook = Duration.milliseconds(1_500)
    /// How long a lookup may hold its place in the window: 20 to 120 ms is usual, 5 s is Avahi's own limit.
    static let patience = Duration.milliseconds(500)
    /// The same for a repeated lookup in a crowd: each one without an answer costs avahi-daemon queries and timers.
    static let crowdedPatience = Duration.milliseconds(250)
    /// The same for a first lookup in a crowd. A service that has just been announced is in Avahi's cache, and is answered for at
    /// once. Avahi sends a query 100 ms after it was asked (AVAHI_QUERY_DEFER_MSEC in avahi-core/query-sched.c), so that a
    /// lookup that ends before costs no query.
    static let glance = Duration.milliseconds(60)

    let limits: Limits
    var instances: [ServiceKey: Instance] = [:]
    var hosts: [HostKey: Host] = [:]
    var tally = Tally()
    private var own = PublishedServices()
    var queue = LookupQueue()
    var resting = Timetable()
    /// Those that are kept and asked for once more.
    var looks = Timetable()
    /// Lookups in the window, and when they leave it.
    var fast = Timetable()
    /// Lookups that left the window without an answer, and when.
    var slow = Timetable()
    var kept = 0
    var followed = 0
    private var splits = 0
    private var dirty: Set<ServiceKey> = []
    var actions: [Action] = []
    private var events: [SightingEvent] = []

    init(limits: Limits = Limits()) { self.limits = limits }

    /// When `advance` has something to do.
    var deadline: Instant? {
        let next = tally.waiting > 0 ? fast.earliest : nil
        return [resting.earliest, looks.earliest, next].compactMap(\.self).min()
    }

    /// Found, and neither listed, refused nor tried in vain yet.
    var unresolved: Int { tally.unresolved }

    var counts: Counts { tally.counts }

    /// Whether somebody else has a service of that name.
    func isTaken(_ name: String, _ type: ServiceType) -> Bool {
        instances.contains { key, instance in
            !instance.isOurOwn && key.name.elementsEqual(name.utf8) && key.type.lowercased() == type.text
        }
    }

    /// What is ours from now on.
    mutating func own(_ own: PublishedServices) {
        guard own != self.own else { return }
        dirty.formUnion(instances.keys.filter { own.names($0) || self.own.names($0) })
        self.own = own
    }

    /// A service browser saw an instance.
    mutating func found(_ key: ServiceKey) {
        guard instances[key] == nil else { return }
        makeRoom()
        put(Instance(resolution: .queued), at: key)
        queue.append(key, isFirst: true)
    }

    /// A record browser saw an instance whose name is cut at its dots.
    mutating func foundSplit(_ key: ServiceKey) {
        guard instances[key] == nil else { return }
        guard splits < limits.splits else { return drop(limit: "\(limits.splits) malformed adverts") }
        makeRoom()
        splits += 1
        put(Instance(resolution: .records), at: key)
        actions.append(.followRecords(key))
    }

    /// A goodbye, or the end of a record's life.
    mutating func disappeared(_ key: ServiceKey) {
        guard let instance = instances[key] else { return }
        put(nil, at: key)
        switch instance.resolution {
        case .queued: break
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
    mutating func resolved(_ key: ServiceKey, _ details: ResolvedService, now: Instant) {
        guard var instance = instances[key] else { return }
        let isNews = instance.details != details
        switch instance.resolution {
        case .trying(isKept: true):
            (fast[key], slow[key]) = (nil, nil)
            instance.resolution = .kept
            if isNews { looks[key] = now + Self.secondLook }
        case .trying(isKept: false):
            stopResolving(key, instance.resolution)
            instance.resolution = .resting
            resting[key] = now + (isNews ? Self.secondLook : Self.restingTime)
        case .kept: if isNews { looks[key] = now + Self.secondLook }
        case .records: break
        case .queued, .resting: return
        }
        instance.attempts = 0
        put(instance, at: key)
        settle(key, details)
        askForAddress(key)
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
        var pause = Self.retryTimes[min(instance.attempts, Self.retryTimes.count - 1)]
        // The first two come soon in any case: a packet may have been lost.
        if instance.attempts > 1 { pause *= max(1, tally.counts.failed / Self.patientCrowd) }
        resting[key] = now + pause
        instance.attempts += 1
        instance.resolution = .resting
        put(instance, at: key)
        if instance.attempts > 1 { settle(key, nil) }
    }

    /// An SRV record of a split advert came or went.
    mutating func location(_ key: ServiceKey, _ record: SRVRecord, isThere: Bool) {
        guard var instance = instances[key], instance.resolution == .records else { return }
        // Of two records, the old one leaves after the new one came.
        if !isThere, instance.location != record { return }
        instance.location = isThere ? record : nil
        put(instance, at: key)
        settle(key, instance.recordDetails)
    }

    /// A TXT record of a split advert came or went.
    mutating func text(_ key: ServiceKey, _ txt: TXTRecord, isThere: Bool) {
        guard var instance = instances[key], instance.resolution == .records else { return }
        if !isThere, instance.txt != txt { return }
        instance.txt = isThere ? txt : nil
        put(instance, at: key)
        settle(key, instance.recordDetails)
    }

    /// An A or AAAA record came or went.
    mutating func address(_ key: HostKey, _ address: IPAddress, transport: CInt, isThere: Bool) {
        guard var host = hosts[key] else { return }
        let told = Host.Told(transport: transport, address: address)
        if isThere { host.addresses.insert(told) } else { host.addresses.remove(told) }
        hosts[key] = host
        dirty.formUnion(host.users)
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

    mutating func put(_ instance: Instance?, at key: ServiceKey) {
        if let old = instances[key] { tally.remove(old) }
        if let instance { tally.add(instance) }
        instances[key] = instance
    }

    private mutating func settle(_ key: ServiceKey, _ details: ResolvedService?) {
        guard var instance = instances[key] else { return }
        instance.details = details
        let host = details.map { HostKey(interface: key.interface, name: $0.host) }
        if host != instance.host {
            leaveHost(instance.host, key)
            instance.host = host
            if let host { joinHost(host, key, isSplit: instance.resolution == .records) }
        }
        put(instance, at: key)
        dirty.insert(key)
    }

    private mutating func joinHost(_ key: HostKey, _ user: ServiceKey, isSplit: Bool) {
        if hosts[key] == nil {
            // A split advert has no resolver that could bring an address.
            let isFollowed = followed < limits.hosts || isSplit
            hosts[key] = Host(isFollowed: isFollowed)
            if isFollowed {
                followed += 1
                actions.append(.follow(key))
            }
        }
        hosts[key]?.users.insert(user)
    }

    private mutating func leaveHost(_ key: HostKey?, _ user: ServiceKey) {
        guard let key, var host = hosts[key] else { return }
        host.users.remove(user)
        hosts[key] = host.users.isEmpty ? nil : host
        guard host.users.isEmpty, host.isFollowed else { return }
        followed -= 1
        actions.append(.unfollow(key))
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
        put(instance, at: key)
    }

    private func verdict(
        _ key: ServiceKey,
        _ details: ResolvedService?,
        _ addresses: [IPAddress],
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
    fileprivate var recordDetails: ResolvedService? {
        guard let location, let txt else { return nil }
        return ResolvedService(host: location.target.escaped, port: location.port, txt: txt)
    }
}
