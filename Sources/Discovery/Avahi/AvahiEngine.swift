import CAvahi
import Logging
import Model

/// Keeps a connection to Avahi, and through it browses and publishes.
///
/// The only code that makes libavahi-client do anything. Callbacks do no more than fill the inbox; every decision is made
/// in `turn`, between two rounds of the poll, by the state machines that this actor holds.
actor AvahiEngine {
    /// The times that tests shorten.
    struct Timing: Sendable {
        /// How often the daemon is asked whether it answers. A hung daemon tells nothing by itself, and the question that
        /// it does not answer is reported after `BonjourStatus.patience`.
        var heartbeat = Duration.seconds(2)
    }

    nonisolated let loop: AvahiThreadExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    let options: DiscoveryOptions
    let board: AdvertisementStore
    let logger: Logger
    private let silent: SilentRoutes
    private let timing: Timing
    private let feed: SightingQueue
    private let health: BonjourStatus

    private var inbox: [(ticket: AvahiCallbackContext, fact: AvahiEvent)] = []
    var connection: AvahiConnection?
    private var recovery: ReconnectStateMachine
    var table = ServiceTable()
    var reconciliation: InitialSync?
    var failedTypes: [ServiceType: String] = [:]
    var adverts: [String: AdvertisementStateMachine] = [:]
    /// This machine's, as Avahi publishes it.
    var hostName: String?
    private var isBrowsing = false
    private var nextHeartbeat: ContinuousClock.Instant?
    /// What the last failure was, for the status until the next connection stands.
    private var lastFault: AvahiError?
    /// As they were when this turn first needed them.
    private var interfaces: LocalInterfaces?

    init(
        loop: AvahiThreadExecutor,
        options: DiscoveryOptions,
        timing: Timing,
        feed: SightingQueue,
        board: AdvertisementStore,
        health: BonjourStatus,
        silent: SilentRoutes,
        logger: Logger
    ) {
        self.loop = loop
        self.options = options
        self.timing = timing
        self.feed = feed
        self.board = board
        self.health = health
        self.silent = silent
        self.logger = logger
        recovery = ReconnectStateMachine(now: .now)
    }

    /// Takes what a callback told; it is looked at in the next turn.
    func receive(_ fact: AvahiEvent, from ticket: AvahiCallbackContext) { inbox.append((ticket, fact)) }

    /// Does everything that is to be done now.
    ///
    /// In the last turn everything is freed and nothing else done. Otherwise it gives the moment at which there will be
    /// more to do even if nothing happens.
    func turn(on poll: AvahiPollPointer, isLast: Bool) -> ContinuousClock.Instant? {
        if isLast {
            disconnect()
            return nil
        }
        interfaces = nil
        // Calls made on behalf of one fact may call back at once; go on until there is silence.
        repeat {
            let facts = inbox
            inbox = []
            for (ticket, fact) in facts where connection?.holds(ticket) == true { handle(fact, of: ticket.purpose) }
            recover(on: poll)
            if recovery.canBrowse { browse() }
            advertise(isReady: recovery.canPublish)
            if let fault = connection?.fault { fail(fault) }
        } while !inbox.isEmpty
        tell()
        return [recovery.deadline, table.deadline, reconciliation?.deadline, nextHeartbeat, nextAdvertStep]
            .compactMap(\.self).min()
    }

    /// Whether it is known that avahi-daemon is not there: nothing that could say otherwise waits in the inbox.
    var isAbsent: Bool { !recovery.canBrowse && inbox.isEmpty }

    var localInterfaces: LocalInterfaces {
        if let interfaces { return interfaces }
        let current = LocalInterfaces.current()
        interfaces = current
        return current
    }

    private func handle(_ fact: AvahiEvent, of purpose: AvahiObjectKey) {
        switch fact {
        case .client(.connecting): recovery.handle(.connecting, now: .now)
        case .client(.registering):
            recovery.handle(.registering, now: .now)
            withdrawAdverts()
        case .client(.running):
            recovery.handle(.running, now: .now)
            lastFault = nil
            hostName = connection?.hostName()?.lowercased()
            nextHeartbeat = .now + timing.heartbeat
            logger.info("Avahi is there", metadata: ["types": "\(options.types.map(\.text).joined(separator: " "))"])
        case .client(.failed(let code)): fail(.unreachable(reason: AvahiString.error(code)))
        case .service(let change, let key, let isOurOwn):
            handleService(change, key, isOurOwn: isOurOwn, of: purpose)
        case .record(let change, let interface, let transport, let data):
            handleRecord(change, interface: interface, transport: transport, data, of: purpose)
        case .resolved(let details):
            if case .resolver(let key) = purpose { table.resolved(key, details, now: .now) }
        case .unresolved(let code):
            if case .resolver(let key) = purpose { unresolved(key, code) }
        case .group(let group):
            if case .group(let id) = purpose { handleGroup(group, id) }
        }
    }

    /// An error that a callback brought: the connection's end, or only this object's.
    func isFault(_ code: CInt) -> Bool {
        guard let fault = AvahiError(code: code) else { return false }
        fail(fault)
        return true
    }

    private func recover(on poll: AvahiPollPointer) {
        switch recovery.tick(now: .now) {
        case nil: break
        case .giveUp: fail(.absent)
        case .connect:
            do {
                connection = try AvahiConnection(on: poll, engine: self, health: health)
                recovery.handle(.connecting, now: .now)
            } catch {
                fail(error)
            }
        }
    }

    private func browse() {
        guard let connection else { return }
        if !isBrowsing {
            isBrowsing = true
            reconciliation = InitialSync(of: startBrowsers(on: connection), now: .now)
        }
        let routes = silent.take()
        if !routes.isEmpty { table.lookAgain(at: routes, now: .now) }
        table.advance(now: .now)
        perform(table.takeActions(), on: connection)
        if let moment = nextHeartbeat, moment <= .now {
            connection.ping()
            nextHeartbeat = .now + timing.heartbeat
        }
    }

    private func tell() {
        if table.isDirty {
            for event in table.takeEvents(seenFrom: localInterfaces) { feed.send(event) }
            if let connection { perform(table.takeActions(), on: connection) }
        }
        if reconciliation?.isComplete(unresolved: table.unresolved, now: .now) == true {
            reconciliation = nil
            // New names may be published now.
            loop.nudge()
            feed.send(.sourceReconciled(.bonjour))
        }
        let phase: BonjourStatus.Phase
        switch recovery.phase {
        case .disconnected:
            phase = lastFault.map { BonjourStatus.Phase(after: $0) } ?? .disconnected(reason: "not connected yet")
        case .connecting: phase = .connecting
        case .registering: phase = .registering
        case .running: phase = .running
        }
        health.report(
            phase,
            counts: table.counts,
            advertised: adverts.values.count { $0.phase == .published },
            failedTypes: failedTypes
        )
    }

    private func fail(_ fault: AvahiError) {
        let wasBrowsing = isBrowsing
        if wasBrowsing {
            // avahi-daemon's end or the bus's: which of the two it was is not told, and the next try says it.
            logger.notice(
                "Avahi is lost; what it showed is suspect until it is back",
                metadata: ["reason": "\(fault)", "next": "`systemctl status dbus avahi-daemon`"]
            )
        } else if lastFault == nil {
            health.report(BonjourStatus.Phase(after: fault))
            let status = health.status
            logger.notice(
                "Avahi is not there",
                metadata: ["reason": "\(status.detail)", "next": "\(status.remedy ?? "none, it is tried again")"]
            )
        }
        lastFault = fault
        disconnect()
        if wasBrowsing { feed.send(.sourceLost(.bonjour)) }
        recovery.handle(.failed, now: .now)
    }

    private func disconnect() {
        connection?.close()
        connection = nil
        inbox = []
        table = ServiceTable()
        reconciliation = nil
        failedTypes = [:]
        hostName = nil
        isBrowsing = false
        nextHeartbeat = nil
        for id in adverts.keys { adverts[id]?.withdrawn() }
    }
}
