import CAvahi
import Logging
import Model

/// Maintains the connection to Avahi; browses and publishes through it.
///
/// This actor makes all calls into libavahi-client. Callbacks only append to the inbox. The browser, the publisher and
/// the state machine of this actor decide everything else in `runCycle`, between two poll iterations.
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

    private let options: DiscoveryOptions
    private let logger: Logger
    private let silentRoutes: UnresponsiveRoutes
    private let localServices: LocalServiceVerifier
    private let timing: Timing
    private let sightingQueue: SightingQueue
    private let bonjourStatus: BonjourStatus

    private var inbox: [(context: AvahiCallbackContext, event: AvahiEvent)] = []
    private var connection: AvahiConnection?
    private var reconnect: ReconnectStateMachine
    private var browser: BonjourBrowser
    private var publisher: BonjourPublisher
    /// The name of this machine as Avahi publishes it, in lower case.
    private var machineName: String?
    private var nextHeartbeat: ContinuousClock.Instant?
    /// The last failure, reported in the status until the next connection is up.
    private var lastFault: AvahiError?

    init(
        executor: AvahiThreadExecutor,
        options: DiscoveryOptions,
        timing: Timing,
        sightingQueue: SightingQueue,
        store: AdvertisementStore,
        bonjourStatus: BonjourStatus,
        silentRoutes: UnresponsiveRoutes,
        localServices: LocalServiceVerifier,
        logger: Logger
    ) {
        self.executor = executor
        self.options = options
        self.timing = timing
        self.sightingQueue = sightingQueue
        self.bonjourStatus = bonjourStatus
        self.silentRoutes = silentRoutes
        self.localServices = localServices
        self.logger = logger
        reconnect = ReconnectStateMachine(now: .now)
        browser = BonjourBrowser(options: options, logger: logger, localServices: localServices)
        publisher = BonjourPublisher(store: store, logger: logger)
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
        browser.beginCycle()
        // A call made for one event may itself trigger callbacks. Repeat until the inbox stays empty.
        repeat {
            let events = inbox
            inbox = []
            for (context, event) in events where connection?.owns(context) == true {
                handle(event, of: context.objectKey)
            }
            reconnectIfDue(on: poll)
            if reconnect.canBrowse { browse() }
            advertise()
        } while !inbox.isEmpty
        publish()
        return [reconnect.deadline, browser.deadline, publisher.deadline, nextHeartbeat].compactMap(\.self).min()
    }

    private func handle(_ event: AvahiEvent, of objectKey: AvahiObjectKey) {
        // Any other error code concerns only one object.
        if let fault = event.errorCode.flatMap(AvahiError.init(code:)) { return fail(fault) }
        switch event {
        case .client(.connecting): reconnect.handle(.connecting, now: .now)
        case .client(.registering):
            reconnect.handle(.registering, now: .now)
            // The published records point to the old name.
            publisher.withdrawAll(on: connection)
        case .client(.running):
            reconnect.handle(.running, now: .now)
            lastFault = nil
            machineName = connection?.machineName()?.lowercased()
            nextHeartbeat = .now + timing.heartbeat
            logger.info(
                "connected to Avahi",
                metadata: ["types": "\(options.types.map(\.text).joined(separator: " "))"]
            )
        case .client(.failed(let code)): fail(.unreachable(reason: AvahiString.error(code)))
        case .service(let change, let key, let isOurOwn):
            browser.handleService(change, key, isOurOwn: isOurOwn, of: objectKey)
        case .record(let change, let interface, let transport, let data):
            browser.handleRecord(change, interface: interface, transport: transport, data, of: objectKey)
        case .resolved(let details):
            if case .resolver(let key) = objectKey { browser.resolved(key, details) }
        case .unresolved(let code):
            if case .resolver(let key) = objectKey { browser.unresolved(key, code) }
        case .group(let group):
            if case .group(let id) = objectKey { publisher.handle(group, of: id) }
        }
    }

    /// Disconnects if a call has failed in a way that makes the connection useless.
    private func failAfterFault() {
        if let fault = connection?.fault { fail(fault) }
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
        if !browser.isStarted { browser.start(on: connection) }
        browser.resolveAgain(at: silentRoutes.drain())
        browser.advance(on: connection)
        if let moment = nextHeartbeat, moment <= .now {
            connection.ping()
            nextHeartbeat = .now + timing.heartbeat
        }
        failAfterFault()
    }

    private func advertise() {
        // Known to be absent: not connected, and no pending event could change that.
        let isAbsent = !reconnect.canBrowse && inbox.isEmpty
        publisher.update(
            on: connection,
            availability: reconnect.canPublish && connection != nil ? .ready : isAbsent ? .absent : .starting,
            discovered: browser.discovered
        )
        browser.setPublished(OwnAdvertisements(services: publisher.services, machine: machineName))
        failAfterFault()
    }

    /// Sends the changes of this cycle to the consumer, and reports the status.
    private func publish() {
        for event in browser.drainEvents(on: connection) { sightingQueue.send(event) }
        if browser.completeInitialSync() {
            // Advertisements that waited for the initial sync can be published now.
            executor.wakeUp()
            sightingQueue.send(.sourceReconciled(.bonjour))
        }
        failAfterFault()
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
            counts: browser.table.counts,
            advertised: publisher.publishedCount,
            failedTypes: browser.failedTypes
        )
    }

    private func fail(_ fault: AvahiError) {
        let wasBrowsing = browser.isStarted
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
        browser = BonjourBrowser(options: options, logger: logger, localServices: localServices)
        publisher.withdrawAll(on: nil)
        machineName = nil
        nextHeartbeat = nil
    }
}
