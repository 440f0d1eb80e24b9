import Model

/// The state of all services that Avahi reports: what has been resolved, and which lookups come next.
///
/// Has no I/O. Events go in, `drainActions` returns the objects to create and free, and `drainEvents` returns the events
/// for the registry. avahi-daemon grants a client 1,024 objects and answers slowly when all are requested at once. The
/// limits follow from that.
struct ServiceTable: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// The limits that keep the client below its 1,024 Avahi objects.
    struct Limits: Sendable {
        /// The number of concurrent lookups that are still within their time limit.
        var window = 48
        /// The same limit while more than `LookupTiming.crowdThreshold` services fail.
        var crowdedWindow = 32
        /// The number of lookups that exceeded their time limit and left the window. Beyond this limit the oldest is
        /// cancelled.
        var slow = 64
        /// The number of resolvers kept open, so that changes of port or TXT and silent failures are reported. Services
        /// beyond this limit are looked up again every `LookupTiming.refreshInterval`.
        var openResolvers = 288
        /// The number of machines with complete address browsing; each costs two browsers. Beyond this limit one address
        /// per service is used.
        var machines = 224
        /// The number of services with a split instance name. Each costs two browsers, and two more for its machine.
        var splits = 32
        /// The total number of services. Bounds the memory that a flood of names can use.
        var services = 8_192
    }

    /// A call that `BonjourBrowser` has to make.
    enum Action: Hashable, Sendable {
        case resolve(ServiceKey, wantsAddress: Bool)
        case stopResolving(ServiceKey)
        case follow(MachineKey)
        case unfollow(MachineKey)
        case followRecords(ServiceKey)
        case unfollowRecords(ServiceKey)
        /// Ask the responders of this host whether they have the service.
        case confirm(LocalService)
        /// Log only: the service was rejected.
        case refuse(ServiceKey, reason: String)
        /// Log only: a limit dropped services. The number counts since the connection began.
        case drop(Int, limit: String)
    }

    let limits: Limits
    var instances: [ServiceKey: ServiceInstance] = [:]
    private(set) var machines: MachineTable
    var counter = ServiceCounter()
    private var published = OwnAdvertisements()
    var queue = LookupQueue()
    var retryAt = ServiceSchedule()
    /// Services with an open resolver that are to be looked up again.
    var refreshAt = ServiceSchedule()
    /// Lookups in the window, with the time at which they leave it.
    var fast = ServiceSchedule()
    /// Lookups that left the window without a response, with the time of leaving.
    var slow = ServiceSchedule()
    var openResolvers = 0
    private var splits = 0
    private var dirty: Set<ServiceKey> = []
    var actions: [Action] = []
    private var events: [SightingEvent] = []

    init(limits: Limits = Limits()) {
        self.limits = limits
        machines = MachineTable(limit: limits.machines)
    }

    /// The time at which `advance` has something to do.
    var deadline: Instant? {
        let next = counter.waiting > 0 ? fast.earliest : nil
        return [retryAt.earliest, refreshAt.earliest, next].compactMap(\.self).min()
    }

    /// Services found that are not listed, not rejected, and not yet tried without success.
    var unresolved: Int { counter.unresolved }

    var counts: ServiceCounter.Counts { counter.counts }

    /// The time limits and delays for the current number of failing services.
    var timing: LookupTiming { LookupTiming(failed: counter.counts.failed) }

    /// Returns true if another machine's service uses this name.
    func isTaken(_ name: String, _ type: ServiceType) -> Bool {
        instances.contains { key, instance in
            !instance.isOurOwn && key.name.elementsEqual(name.utf8) && key.type.lowercased() == type.text
        }
    }

    /// Replaces the set of Patchbay's own services, which are not listed.
    mutating func setPublished(_ published: OwnAdvertisements) {
        guard published != self.published else { return }
        dirty.formUnion(instances.keys.filter { published.matches($0) || self.published.matches($0) })
        self.published = published
    }

    /// Records which services a responder of this host has confirmed.
    mutating func confirm(_ services: Set<LocalService>) {
        for service in services {
            guard var instance = instances[service.key] else { continue }
            instance.confirmedPort = service.port
            put(instance, at: service.key)
            dirty.insert(service.key)
        }
    }

    /// Adds an instance that a service browser reported.
    mutating func found(_ key: ServiceKey) {
        guard instances[key] == nil else { return }
        makeRoom()
        put(ServiceInstance(.queued), at: key)
        queue.append(key, isFirst: true)
    }

    /// Adds an instance that a record browser reported, with a name that is split at its dots.
    mutating func foundSplit(_ key: ServiceKey) {
        guard instances[key] == nil else { return }
        guard splits < limits.splits else { return drop(limit: "\(limits.splits) malformed advertisements") }
        makeRoom()
        splits += 1
        put(ServiceInstance(.records), at: key)
        actions.append(.followRecords(key))
    }

    /// Removes an instance after a goodbye packet or when its record expired.
    mutating func disappeared(_ key: ServiceKey) {
        guard let instance = instances[key] else { return }
        put(nil, at: key)
        switch instance.resolution {
        case .queued: break
        case .trying, .watching: stopResolving(key, instance.resolution)
        case .idle: retryAt[key] = nil
        case .records:
            splits -= 1
            actions.append(.unfollowRecords(key))
        }
        releaseMachine(instance.machine, key)
        dirty.remove(key)
        if let listed = instance.listed { events.append(.lost(listed.id)) }
    }

    /// Stores the result of a resolver, either its first result or a change.
    mutating func resolved(_ key: ServiceKey, _ details: ResolvedService, now: Instant) {
        guard var instance = instances[key] else { return }
        let isNews = instance.details != details
        switch instance.resolution {
        case .trying(keepsResolver: true):
            (fast[key], slow[key]) = (nil, nil)
            instance.resolution = .watching
            if isNews { refreshAt[key] = now + LookupTiming.secondLookupDelay }
        case .trying(keepsResolver: false):
            stopResolving(key, instance.resolution)
            instance.resolution = .idle
            retryAt[key] = now + (isNews ? LookupTiming.secondLookupDelay : LookupTiming.refreshInterval)
        case .watching: if isNews { refreshAt[key] = now + LookupTiming.secondLookupDelay }
        case .records: break
        case .queued, .idle: return
        }
        instance.attempts = 0
        put(instance, at: key)
        setResolved(key, details)
        resolveAddress(key)
    }

    /// Handles a failed lookup: the resolver could not be created, had no response within 5 s, or lost its records.
    ///
    /// A single failure does not end a sighting: libavahi may hold an outdated address until a new lookup
    /// (avahi/avahi#95). The second consecutive failure does.
    mutating func unresolved(_ key: ServiceKey, now: Instant) {
        guard var instance = instances[key] else { return }
        switch instance.resolution {
        case .trying, .watching: stopResolving(key, instance.resolution)
        case .queued, .idle, .records: return
        }
        retryAt[key] = now + timing.retryDelay(earlierFailures: instance.attempts)
        instance.attempts += 1
        instance.resolution = .idle
        put(instance, at: key)
        if instance.attempts > 1 { setResolved(key, nil) }
    }

    /// Adds or removes an SRV record of a split instance name.
    mutating func location(_ key: ServiceKey, _ record: SRVRecord, isPresent: Bool) {
        guard var instance = instances[key], instance.resolution == .records else { return }
        // When a record is replaced, the old record is removed after the new one was added.
        if !isPresent, instance.location != record { return }
        instance.location = isPresent ? record : nil
        put(instance, at: key)
        setResolved(key, instance.recordDetails)
    }

    /// Adds or removes a TXT record of a split instance name.
    mutating func text(_ key: ServiceKey, _ txt: TXTRecord, isPresent: Bool) {
        guard var instance = instances[key], instance.resolution == .records else { return }
        if !isPresent, instance.txt != txt { return }
        instance.txt = isPresent ? txt : nil
        put(instance, at: key)
        setResolved(key, instance.recordDetails)
    }

    /// Adds or removes an A or AAAA record.
    mutating func address(_ key: MachineKey, _ address: IPAddress, transport: CInt, isPresent: Bool) {
        dirty.formUnion(machines.setAddress(address, of: key, transport: transport, isPresent: isPresent))
    }

    /// Removes and returns the pending actions.
    mutating func drainActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    /// Returns the changes since the last call, with at most one event per sighting that still exists.
    mutating func drainEvents(seenFrom local: LocalInterfaces) -> [SightingEvent] {
        for key in dirty { evaluate(key, seenFrom: local) }
        dirty = []
        defer { events = [] }
        return events
    }

    var isDirty: Bool { !dirty.isEmpty || !events.isEmpty }

    /// Stores or removes an instance and updates the counts.
    mutating func put(_ instance: ServiceInstance?, at key: ServiceKey) {
        if let old = instances[key] { counter.remove(old) }
        if let instance { counter.add(instance) }
        instances[key] = instance
    }

    private mutating func setResolved(_ key: ServiceKey, _ details: ResolvedService?) {
        guard var instance = instances[key] else { return }
        instance.details = details
        let machine = details.map { MachineKey(interface: key.interface, name: $0.machine) }
        if machine != instance.machine {
            releaseMachine(instance.machine, key)
            instance.machine = machine
            if let machine, machines.addUser(key, of: machine, isSplit: instance.resolution == .records) {
                actions.append(.follow(machine))
            }
        }
        put(instance, at: key)
        dirty.insert(key)
    }

    private mutating func releaseMachine(_ machine: MachineKey?, _ user: ServiceKey) {
        if let machine, machines.removeUser(user, of: machine) { actions.append(.unfollow(machine)) }
    }

    private mutating func evaluate(_ key: ServiceKey, seenFrom local: LocalInterfaces) {
        guard var instance = instances[key] else { return }
        let addresses = instance.machine.map { machines.addresses(of: $0) } ?? []
        instance.isOurOwn = instance.details.map { published.contains(key, at: $0) } ?? false
        let (sighting, refusal) = instance.sighting(of: key, at: addresses, seenFrom: local)
        if let port = instance.portToConfirm(of: key, at: addresses) {
            instance.askedPort = port
            actions.append(.confirm(LocalService(key: key, port: port)))
        }
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
}
