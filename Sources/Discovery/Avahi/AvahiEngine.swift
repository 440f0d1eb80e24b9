import CAvahi
import Logging
import Model

/// Maintains the connection to Avahi; browses and publishes through it.
///
/// This actor makes all calls into libavahi-client. Callbacks only append to the inbox. The state machines of this
/// actor decide everything else in `runCycle`, between two poll iterations.
actor AvahiEngine {
    /// Intervals that tests shorten.
    struct Timing: Sendable {
        /// The interval between two checks that the daemon responds.
        ///
        /// A hung daemon sends no event. An unanswered check is reported after `BonjourStatus.slowCallThreshold`.
        var heartbeat = Duration.seconds(2)
    }

    nonisolated let executor: AvahiThreadExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    let options: DiscoveryOptions
    let store: AdvertisementStore
    let logger: Logger
    private let silentRoutes: SilentRoutes
    private let timing: Timing
    private let sightingQueue: SightingQueue
    private let bonjourStatus: BonjourStatus

    private var inbox: [(context: AvahiCallbackContext, event: AvahiEvent)] = []
    var connection: AvahiConnection?
    private var reconnect: ReconnectStateMachine
    var table = ServiceTable()
    var initialSync: InitialSync?
    var failedTypes: [ServiceType: String] = [:]
    var advertisements: [String: AdvertisementStateMachine] = [:]
    /// This machine's host name as Avahi publishes it, in lower case.
    var hostName: String?
    private var isBrowsing = false
    private var nextHeartbeat: ContinuousClock.Instant?
    /// The last failure, reported in the status until the next connection is up.
    private var lastFault: AvahiError?
    /// The network interfaces, read at most once per cycle.
    private var interfaces: LocalInterfaces?

    init(
        executor: AvahiThreadExecutor,
        options: DiscoveryOptions,
        timing: Timing,
        sightingQueue: SightingQueue,
        store: AdvertisementStore,
        bonjourStatus: BonjourStatus,
        silentRoutes: SilentRoutes,
        logger: Logger
    ) {
        self.executor = executor
        self.options = options
        self.timing = timing
        self.sightingQueue = sightingQueue
        self.store = store
        self.bonjourStatus = bonjourStatus
        self.silentRoutes = silentRoutes
        self.logger = logger
        reconnect = ReconnectStateMachine(now: .now)
    }

    /// Queues an event from a callback for the next cycle.
    func receive(_ event: AvahiEvent, from context: AvahiCallbackContext) { inbox.append((context, event)) }

    /// Processes all events and executes all actions that are due.
    ///
    /// In the last cycle, only frees everything.
    ///
    /// - Returns: The time at which the next action is due if no event arrives first.
    func runCycle(on poll: AvahiPollPointer, isLast: Bool) -> ContinuousClock.Instant? {
        if isLast {
            disconnect()
            return nil
        }
        interfaces = nil
        // A call made for one event may itself trigger callbacks. Repeat until the inbox stays empty.
        repeat {
            let events = inbox
            inbox = []
            for (context, event) in events where connection?.owns(context) == true {
                handle(event, of: context.objectKey)
            }
            reconnectIfDue(on: poll)
            if reconnect.canBrowse { browse() }
            advertise(isReady: reconnect.canPublish)
            if let fault = connection?.fault { fail(fault) }
        } while !inbox.isEmpty
        publish()
        return [reconnect.deadline, table.deadline, initialSync?.deadline, nextHeartbeat, nextAdvertisementDeadline]
            .compactMap(\.self).min()
    }

    /// True when avahi-daemon is known to be absent: not connected, and no pending event could change that.
    var isAbsent: Bool { !reconnect.canBrowse && inbox.isEmpty }

    var localInterfaces: LocalInterfaces {
        if let interfaces { return interfaces }
        let current = LocalInterfaces.current()
        interfaces = current
        return current
    }

    private func handle(_ event: AvahiEvent, of objectKey: AvahiObjectKey) {
        switch event {
        case .client(.connecting): reconnect.handle(.connecting, now: .now)
        case .client(.registering):
            reconnect.handle(.registering, now: .now)
            withdrawAdvertisements()
        case .client(.running):
            reconnect.handle(.running, now: .now)
            lastFault = nil
            hostName = connection?.hostName()?.lowercased()
            nextHeartbeat = .now + timing.heartbeat
            logger.info(
                "connected to Avahi",
                metadata: ["types": "\(options.types.map(\.text).joined(separator: " "))"]
            )
        case .client(.failed(let code)): fail(.unreachable(reason: AvahiString.error(code)))
        case .service(let change, let key, let isOurOwn):
            handleService(change, key, isOurOwn: isOurOwn, of: objectKey)
        case .record(let change, let interface, let transport, let data):
            handleRecord(change, interface: interface, transport: transport, data, of: objectKey)
        case .resolved(let details):
            if case .resolver(let key) = objectKey { table.resolved(key, details, now: .now) }
        case .unresolved(let code):
            if case .resolver(let key) = objectKey { unresolved(key, code) }
        case .group(let group):
            if case .group(let id) = objectKey { handleGroup(group, id) }
        }
    }

    /// Returns true and disconnects if an error code from a callback means that the connection failed.
    ///
    /// Otherwise the error concerns only one object.
    func isFault(_ code: CInt) -> Bool {
        guard let fault = AvahiError(code: code) else { return false }
        fail(fault)
        return true
    }

    private func reconnectIfDue(on poll: AvahiPollPointer) {
        switch reconnect.tick(now: .now) {
        case nil: break
        case .giveUp: fail(.absent)
        case .connect:
            do {
                connection = try AvahiConnection(on: poll, engine: self, bonjourStatus: bonjourStatus)
                reconnect.handle(.connecting, now: .now)
            } catch {
                fail(error)
            }
        }
    }

    private func browse() {
        guard let connection else { return }
        if !isBrowsing {
            isBrowsing = true
            initialSync = InitialSync(of: startBrowsers(on: connection), now: .now)
        }
        let routes = silentRoutes.drain()
        if !routes.isEmpty { table.resolveAgain(at: routes, now: .now) }
        table.advance(now: .now)
        perform(table.drainActions(), on: connection)
        if let moment = nextHeartbeat, moment <= .now {
            connection.ping()
            nextHeartbeat = .now + timing.heartbeat
        }
    }

    private func publish() {
        if table.isDirty {
            for event in table.drainEvents(seenFrom: localInterfaces) { sightingQueue.send(event) }
            if let connection { perform(table.drainActions(), on: connection) }
        }
        if initialSync?.isComplete(unresolved: table.unresolved, now: .now) == true {
            initialSync = nil
            // Advertisements that waited for the initial sync can be published now.
            executor.wakeUp()
            sightingQueue.send(.sourceReconciled(.bonjour))
        }
        let phase: BonjourStatus.Phase
        switch reconnect.phase {
        case .disconnected:
            phase = lastFault.map { BonjourStatus.Phase(after: $0) } ?? .disconnected(reason: "not connected yet")
        case .connecting: phase = .connecting
        case .registering: phase = .registering
        case .running: phase = .running
        }
        bonjourStatus.report(
            phase,
            counts: table.counts,
            advertised: advertisements.values.count { $0.phase == .published },
            failedTypes: failedTypes
        )
    }

    private func fail(_ fault: AvahiError) {
        let wasBrowsing = isBrowsing
        if wasBrowsing {
            // Either avahi-daemon or D-Bus stopped. The error does not tell which; the next connection attempt will.
            logger.notice(
                "lost the connection to Avahi; its services are suspect until it returns",
                metadata: ["reason": "\(fault)", "hint": "`systemctl status dbus avahi-daemon`"]
            )
        } else if lastFault == nil {
            bonjourStatus.report(BonjourStatus.Phase(after: fault))
            let status = bonjourStatus.status
            logger.notice(
                "Avahi is not available",
                metadata: ["reason": "\(status.detail)", "hint": "\(status.hint ?? "none, Patchbay retries")"]
            )
        }
        lastFault = fault
        disconnect()
        if wasBrowsing { sightingQueue.send(.sourceLost(.bonjour)) }
        reconnect.handle(.failed, now: .now)
    }

    private func disconnect() {
        connection?.close()
        connection = nil
        inbox = []
        table = ServiceTable()
        initialSync = nil
        failedTypes = [:]
        hostName = nil
        isBrowsing = false
        nextHeartbeat = nil
        for id in advertisements.keys { advertisements[id]?.withdrawn() }
    }
}
