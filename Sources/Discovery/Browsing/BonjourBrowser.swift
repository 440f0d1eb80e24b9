import CAvahi
import Logging
import Model

/// Browses the configured service types over one connection to avahi-daemon.
///
/// Feeds Avahi's events into the service table, and executes the table's actions. An error code in an event concerns
/// only one object: the engine handles failures of the connection itself.
struct BonjourBrowser {
    private let options: DiscoveryOptions
    private let logger: Logger
    private let localServices: LocalServiceVerifier
    private let readInterfaces: @Sendable () -> LocalInterfaces
    private(set) var table = ServiceTable()
    /// Types that Avahi does not browse, with the reason.
    private(set) var failedTypes: [ServiceType: String] = [:]
    /// True from the creation of the browsers.
    private(set) var isStarted = false
    private var initialSync: InitialSyncTracker?
    /// The network interfaces, read at most once per cycle.
    private var interfaces: LocalInterfaces?

    init(
        options: DiscoveryOptions,
        logger: Logger,
        localServices: LocalServiceVerifier? = nil,
        readInterfaces: @escaping @Sendable () -> LocalInterfaces = { .current() }
    ) {
        self.options = options
        self.localServices = localServices ?? LocalServiceVerifier(logger: logger)
        self.logger = logger
        self.readInterfaces = readInterfaces
    }

    /// The time at which the browser has something to do.
    var deadline: ContinuousClock.Instant? { [table.deadline, initialSync?.deadline].compactMap(\.self).min() }

    /// The services of all machines; nil while those that exist at the start are still being reported.
    var discovered: ServiceTable? { initialSync == nil ? table : nil }

    /// Forgets the network interfaces, so that they are read again.
    mutating func beginCycle() { interfaces = nil }

    /// Creates the browsers of all types.
    mutating func start(on calls: any AvahiCalls) {
        isStarted = true
        var browsers: [AvahiObjectKey] = []
        for type in options.types {
            let services = calls.browseServices(type)
            guard services == CInt(AVAHI_OK) else {
                failedTypes[type] = AvahiString.error(services)
                logger.warning(
                    "cannot browse a service type",
                    metadata: ["type": "\(type)", "reason": "\(AvahiString.error(services))"]
                )
                continue
            }
            browsers.append(.services(type))
            let name = "\(type).\(AvahiConnection.domain)"
            let pointers = calls.browseRecords(
                .pointers(type),
                name: name,
                type: Int(AVAHI_DNS_TYPE_PTR),
                interface: AvahiConnection.anyInterface,
                transport: AvahiConnection.anyProtocol
            )
            if pointers == CInt(AVAHI_OK) { browsers.append(.pointers(type)) }
        }
        // These browsers will report ALL_FOR_NOW.
        initialSync = InitialSyncTracker(of: browsers, now: .now)
    }

    /// Makes the calls that are due.
    mutating func advance(on calls: any AvahiCalls) {
        table.confirm(localServices.drain())
        table.advance(now: .now)
        perform(table.drainActions(), on: calls)
    }

    /// Schedules a new lookup of the services at `routes`.
    mutating func resolveAgain(at routes: Set<Route>) {
        if !routes.isEmpty { table.resolveAgain(at: routes, now: .now) }
    }

    /// Replaces the set of Patchbay's own services, which are not listed.
    mutating func setPublished(_ published: OwnAdvertisements) { table.setPublished(published) }

    /// Returns the changes since the last call, and frees what they made unnecessary.
    mutating func drainEvents(on calls: (any AvahiCalls)?) -> [SightingEvent] {
        guard table.isDirty else { return [] }
        let events = table.drainEvents(seenFrom: localInterfaces())
        if let calls { perform(table.drainActions(), on: calls) }
        return events
    }

    /// Returns true once: when all services that existed at the start are reported.
    mutating func completeInitialSync() -> Bool {
        guard initialSync?.isComplete(unresolved: table.unresolved, now: .now) == true else { return false }
        initialSync = nil
        return true
    }

    /// Handles an event of a service browser.
    mutating func handleService(
        _ change: AvahiEvent.Change,
        _ key: ServiceKey?,
        isOurOwn: Bool,
        of browser: AvahiObjectKey
    ) {
        switch change {
        case .appeared:
            guard let key, !isOurOwn, accepts(key.interface) else { return }
            table.found(key)
        case .disappeared:
            if let key { table.disappeared(key) }
        case .allForNow: initialSync?.browserFinished(browser)
        case .failed(let code): browserFailed(browser, code)
        }
    }

    /// Handles an event of a record browser.
    mutating func handleRecord(
        _ change: AvahiEvent.Change,
        interface: CInt,
        transport: CInt,
        _ data: [UInt8],
        of objectKey: AvahiObjectKey
    ) {
        switch change {
        case .appeared, .disappeared: break
        case .allForNow: return initialSync?.browserFinished(objectKey) ?? ()
        case .failed(let code): return browserFailed(objectKey, code)
        }
        let isPresent = change == .appeared
        switch objectKey {
        case .pointers(let type):
            guard accepts(interface), let target = DNSName(pointerData: data), target.isQueryable,
                case .split(let name) = InstanceName(target: target, of: type, in: AvahiConnection.domain)
            else { return }
            let key = ServiceKey(
                interface: interface,
                transport: transport,
                name: name,
                type: type.text,
                domain: AvahiConnection.domain
            )
            if isPresent { table.foundSplit(key) } else { table.disappeared(key) }
        case .location(let key):
            if let record = SRVRecord(data: data) { table.location(key, record, isPresent: isPresent) }
        case .text(let key): table.text(key, TXTRecord(recordData: data), isPresent: isPresent)
        case .addresses(let machine, let isIPv4):
            guard let address = IPAddress(bytes: data), address.isIPv4 == isIPv4 else { return }
            table.address(machine, address, transport: transport, isPresent: isPresent)
        case .client, .services, .resolver, .group, .heartbeat: break
        }
    }

    /// Handles the result of a lookup.
    mutating func resolved(_ key: ServiceKey, _ details: ResolvedService) {
        table.resolved(key, details, now: .now)
    }

    /// Handles a failed lookup.
    mutating func unresolved(_ key: ServiceKey, _ code: CInt) {
        logger.debug(
            "cannot resolve a service",
            metadata: [
                "name": "\(SanitizedText(key.instance))", "type": "\(key.type)", "reason": "\(AvahiString.error(code))",
            ]
        )
        table.unresolved(key, now: .now)
    }

    /// Executes the actions of the service table.
    private mutating func perform(_ actions: [ServiceTable.Action], on calls: any AvahiCalls) {
        for action in actions {
            switch action {
            case .resolve(let key, let wantsAddress):
                let code = calls.resolve(key, wantsAddress: wantsAddress)
                if code != CInt(AVAHI_OK), calls.fault == nil { unresolved(key, code) }
            case .stopResolving(let key): calls.free(.resolver(key))
            case .follow(let machine):
                browseAddresses(of: machine, isIPv4: true, on: calls)
                browseAddresses(of: machine, isIPv4: false, on: calls)
            case .unfollow(let machine):
                calls.free(.addresses(machine, isIPv4: true))
                calls.free(.addresses(machine, isIPv4: false))
            case .followRecords(let key):
                browseRecords(of: key, .location(key), type: Int(AVAHI_DNS_TYPE_SRV), on: calls)
                browseRecords(of: key, .text(key), type: Int(AVAHI_DNS_TYPE_TXT), on: calls)
            case .unfollowRecords(let key):
                calls.free(.location(key))
                calls.free(.text(key))
            case .confirm(let service): localServices.add(service)
            case .refuse(let key, let reason):
                logger.notice(
                    "rejected a service",
                    metadata: ["name": "\(SanitizedText(key.instance))", "type": "\(key.type)", "reason": "\(reason)"]
                )
            case .drop(let count, let limit):
                logger.warning(
                    "dropped services because of a limit",
                    metadata: ["limit": "\(limit)", "dropped": "\(count)", "hint": "\(BonjourStatus.floodHint)"]
                )
            }
        }
    }

    private func browseAddresses(of machine: MachineKey, isIPv4: Bool, on calls: any AvahiCalls) {
        let objectKey = AvahiObjectKey.addresses(machine, isIPv4: isIPv4)
        let code = calls.browseRecords(
            objectKey,
            name: machine.name,
            type: Int(isIPv4 ? AVAHI_DNS_TYPE_A : AVAHI_DNS_TYPE_AAAA),
            interface: machine.interface,
            transport: AvahiConnection.anyProtocol
        )
        if code != CInt(AVAHI_OK) { warn("cannot browse the addresses of a machine", of: objectKey, code: code) }
    }

    /// Browses the records of a split instance name.
    private func browseRecords(
        of key: ServiceKey,
        _ objectKey: AvahiObjectKey,
        type: Int,
        on calls: any AvahiCalls
    ) {
        // The instance name as it was sent: split into labels at its dots.
        let labels = key.name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map { Array($0) }
        let code = calls.browseRecords(
            objectKey,
            name: DNSName(labels: labels + DNSName(plain: "\(key.type).\(key.domain)").labels).escaped,
            type: type,
            interface: key.interface,
            transport: key.transport
        )
        if code != CInt(AVAHI_OK) {
            warn("cannot browse the records of a malformed advertisement", of: objectKey, code: code)
        }
    }

    private mutating func browserFailed(_ objectKey: AvahiObjectKey, _ code: CInt) {
        initialSync?.browserFinished(objectKey)
        if case .services(let type) = objectKey { failedTypes[type] = AvahiString.error(code) }
        warn("an Avahi browser failed", of: objectKey, code: code)
    }

    /// Returns true for an interface without a known name. The interface has gone or belongs to another network
    /// namespace, so no glob can name it.
    private mutating func accepts(_ interface: CInt) -> Bool {
        localInterfaces().names[interface].map { options.interfaces.accepts($0) } ?? true
    }

    private mutating func localInterfaces() -> LocalInterfaces {
        let current = interfaces ?? readInterfaces()
        interfaces = current
        return current
    }

    private func warn(_ message: Logger.Message, of objectKey: AvahiObjectKey, code: CInt) {
        logger.warning(
            message,
            metadata: [
                "object": "\(SanitizedText("\(objectKey)", limit: 200))", "reason": "\(AvahiString.error(code))",
            ]
        )
    }
}
