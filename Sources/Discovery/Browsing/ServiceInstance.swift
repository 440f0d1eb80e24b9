import Model

/// The state of one service that Avahi reported.
struct ServiceInstance: Sendable {
    /// The lookup state of a service.
    enum Resolution: Hashable, Sendable {
        case queued
        case trying(keepsResolver: Bool)
        case watching
        /// The resolver is freed. The table has the time of the next lookup.
        case idle
        /// A split instance name. SRV and TXT record browsers replace the resolver.
        case records
    }

    var resolution: Resolution
    /// The machine's addresses are not browsed, so the resolver must return one.
    var needsAddress = false
    /// The number of consecutive failures.
    var attempts = 0
    var details: ResolvedService?
    var machine: MachineKey?
    var listed: Sighting?
    var refusal: String?
    var isOurOwn = false
    /// The port for which a responder of this host was asked, and the port that it confirmed.
    var askedPort: UInt16?
    var confirmedPort: UInt16?
    var location: SRVRecord?
    var txt: TXTRecord?

    init(_ resolution: Resolution) { self.resolution = resolution }

    /// True until the first lookup has ended.
    var isNew: Bool { attempts == 0 && details == nil }

    /// The details from both records of a split instance name, or nil. RFC 6763, section 6.1, requires a TXT record for
    /// every service.
    var recordDetails: ResolvedService? {
        guard let location, let txt else { return nil }
        return ResolvedService(machine: location.target.escaped, port: location.port, txt: txt)
    }

    /// Evaluates what is known of the service.
    ///
    /// - Parameters:
    ///   - key: The key of the service.
    ///   - addresses: The browsed addresses of its machine. If there are none, the address from the resolver is used.
    ///   - local: The interfaces of this machine.
    /// - Returns: The sighting, or the reason why the service must not be listed; both nil while it is unresolved.
    func sighting(
        of key: ServiceKey,
        at addresses: Set<IPAddress>,
        seenFrom local: LocalInterfaces
    ) -> (Sighting?, refusal: String?) {
        guard let details, !isOurOwn else { return (nil, nil) }
        // A broker's service is another route to an app of that broker. To list it would let two brokers form a loop.
        if BrokerTXTMarker.isSet(on: details.txt) { return (nil, "another broker publishes it for an app of its own") }
        if details.port == 0 { return (nil, "it advertises port 0") }
        let addresses = addresses.isEmpty ? Set(details.address.map { [$0] } ?? []) : addresses
        if addresses.isEmpty { return (nil, nil) }
        let isConfirmed = confirmedPort == details.port
        let sighting = Sighting(of: key, details, at: addresses, seenFrom: local, isFromThisHost: isConfirmed)
        return (sighting, sighting?.blocked)
    }

    /// The port of a Dart VM service with a loopback address from another interface. Nil for every other service, and if
    /// a responder of this host was asked already.
    func portToConfirm(of key: ServiceKey, at addresses: Set<IPAddress>) -> UInt16? {
        let addresses = addresses.isEmpty ? Set(details?.address.map { [$0] } ?? []) : addresses
        guard let details, details.port != 0, askedPort != details.port, key.interface != IPAddress.loopbackInterface,
            addresses.contains(where: \.isLoopback),
            ServiceType(key.type).map({ EndpointKind(serviceType: $0) }) == .dartVM
        else { return nil }
        return details.port
    }
}

/// The number of services in each state, updated on every change.
struct ServiceCounter: Sendable {
    struct Counts: Hashable, Sendable {
        var found = 0
        var resolved = 0
        var failed = 0
        var refused = 0
        /// The number of services dropped because of a limit since the connection began.
        var dropped = 0
    }

    private(set) var counts = Counts()
    /// Services found that are not listed, not rejected, and not yet tried without success.
    private(set) var unresolved = 0
    /// Services that wait for their lookup.
    private(set) var waiting = 0

    mutating func add(_ instance: ServiceInstance) { count(instance, 1) }
    mutating func remove(_ instance: ServiceInstance) { count(instance, -1) }

    /// Counts a dropped service. Returns true when the number reaches a power of two.
    mutating func drop() -> Bool {
        counts.dropped += 1
        return counts.dropped.nonzeroBitCount == 1
    }

    private mutating func count(_ instance: ServiceInstance, _ step: Int) {
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
