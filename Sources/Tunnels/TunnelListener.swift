import Logging
import Model
import Synchronization
import SystemIO

/// The open side of a tunnel: accepts clients, asks its gate about each, dials the target, and hands both to the relay.
///
/// While a dial is under way nothing is read from its client.
final class TunnelListener: Sendable {
    /// How a dial ended, for the tunnel's state.
    enum Report: Sendable {
        case connected
        /// With the count of `RouteGeneration` when it began.
        case failed(DialError, UInt64)
        /// No client can come in: why in words, or nil when one can again.
        case listening(fault: String?)
    }

    private enum Phase {
        case idle
        case serving
        case closed
    }

    let id: String
    let tally: TunnelMetrics
    /// Where it listens.
    let addresses: [SocketAddress]

    private let gate: ClientAuthorizer
    private let dialer: TargetDialer
    private let relay: Relay
    private let news: RouteGeneration
    private let limits: TunnelLimits
    private let clock: any Clock<Duration>
    private let logger: Logger
    private let listeners: [Listener]
    private let phase = Mutex(Phase.idle)
    private let closing = AsyncStream.makeStream(of: Void.self)
    private let isClosed = AsyncLatch()
    private let network: NetworkConnectionGroup
    /// How often what goes through the network was cut. Held while a stream is handed to the relay, so that none gets there
    /// behind a cut which was meant for it.
    private let severances = Mutex(0)

    init(
        id: String,
        gate: ClientAuthorizer,
        listeners: [Listener],
        tally: TunnelMetrics,
        dialer: TargetDialer,
        relay: Relay,
        news: RouteGeneration,
        limits: TunnelLimits,
        clock: any Clock<Duration>,
        logger: Logger
    ) {
        self.id = id
        self.gate = gate
        self.listeners = listeners
        self.tally = tally
        network = NetworkConnectionGroup(of: tally)
        self.dialer = dialer
        self.relay = relay
        self.news = news
        self.limits = limits
        self.clock = clock
        self.logger = logger
        addresses = listeners.map(\.address)
    }

    /// Accepts and dials until `close()` or cancellation; then no dial is under way any more and nothing is listened on.
    func serve(_ report: @escaping @Sendable (Report) async -> Void) async {
        guard move(from: .idle, to: .serving) else { return }
        for address in addresses {
            guard let warning = gate.warning(about: address) else { continue }
            logger.warning("\(warning)", metadata: ["tunnel": "\(id)", "address": "\(address)"])
        }
        // What comes before the relay is a dozen short steps between waits: on one thread none of them wakes another.
        await withTaskExecutorPreference(Poller.shared) {
            await withTaskGroup(of: Void.self) { group in
                for listener in listeners { group.addTask { await self.accept(from: listener, report) } }
                for await _ in closing.stream {}
                group.cancelAll()
            }
        }
        shut()
    }

    /// Stops listening and ends all connections. When it returns, the address is free and no byte moves any more.
    func close() async {
        closing.continuation.finish()
        if move(from: .idle, to: .closed) { shut() }
        await isClosed.wait()
        await relay.cut(tally, network)
    }

    /// Ends all connections that go through the network; when it returns, no byte of theirs moves any more.
    ///
    /// A client whose dial is under way is reset if that turns out to lead through the network.
    func sever() async {
        severances.withLock { $0 += 1 }
        await relay.cut(network)
    }

    private func shut() {
        for listener in listeners { listener.close() }
        phase.withLock { $0 = .closed }
        isClosed.open()
    }

    private func move(from old: Phase, to new: Phase) -> Bool {
        phase.withLock { phase in
            guard phase == old else { return false }
            phase = new
            return true
        }
    }

    private func accept(from listener: Listener, _ report: @escaping @Sendable (Report) async -> Void) async {
        let places = DialPlaces(limits.dials)
        // A group that keeps nothing of those who are done: a finished task that nobody asks for takes 5 kB.
        await withDiscardingTaskGroup { group in
            var isStarved = false
            var faults = 0
            while true {
                await places.take()
                do {
                    let client = try await listener.accept().release()
                    isStarved = false
                    if faults > 0 { await report(.listening(fault: nil)) }
                    faults = 0
                    group.addTask {
                        await self.connect(Descriptor(owning: client), listener.address, report)
                        places.giveBack()
                    }
                } catch let error as SocketError where error.isExhaustion {
                    places.giveBack()
                    if !isStarved {
                        logger.warning("clients wait", metadata: ["tunnel": "\(id)", "reason": "\(error)"])
                    }
                    isStarved = true
                    // The connection stays in the queue; cancelled here, the next accept throws.
                    try? await clock.sleep(for: limits.pause)
                } catch is CancellationError {
                    return
                } catch {
                    places.giveBack()
                    if faults == 0 { await report(.listening(fault: "\(error)")) }
                    // It may be of a moment, as after a change of the network: each pause is twice as long, up to a limit.
                    try? await clock.sleep(for: min(limits.pause * (1 << min(faults, 10)), limits.longestPause))
                    faults += 1
                }
            }
        }
    }

    private func connect(
        _ client: consuming Descriptor,
        _ listener: SocketAddress,
        _ report: @Sendable (Report) async -> Void
    ) async {
        guard tally.accept() else { return client.reset() }
        let verdict: ClientAuthorizer.Verdict
        do {
            verdict = try await gate.verdict(on: client.number, through: listener)
        } catch is CancellationError {
            verdict = .left
        } catch {
            verdict = .refused(DialError(.limit, "a client was turned away: \(error)"))
        }
        switch verdict {
        case .open(let screen):
            await forward(client, screen, report)
        case .left:
            client.reset()
            tally.leave()
        case .refused(let failure):
            client.reset()
            tally.leave()
            tally.fail(failure)
        case .browser(let refusal):
            tally.fail(DialError(.browser, "\(refusal)"))
            await ForbiddenResponse.say(refusal, to: client.number, limit: limits.screen.farewell, clock: clock)
            tally.leave()
        }
    }

    private func forward(
        _ client: consuming Descriptor,
        _ screen: RelayInspector?,
        _ report: @Sendable (Report) async -> Void
    ) async {
        let slot = PendingDial()
        let started = ContinuousClock.now
        let count = news.count
        let severed = severances.withLock { $0 }
        let goesByNetwork = Atomic(false)
        let failure = await slot.fill(for: client.number) {
            [dialer, target = gate.spec.target] () async throws -> Connection in
            try await dialer.dial(target) { route in
                goesByNetwork.store(route.isNetwork, ordering: .relaxed)
            }
        }
        if let carrier = slot.take() {
            let took = ContinuousClock.now - started
            let isNetwork = goesByNetwork.load(ordering: .relaxed)
            var waiting = Optional(client)
            var stream = Optional(carrier)
            let isAdopted = severances.withLock { count in
                guard !isNetwork || count == severed, let client = waiting.take(), let carrier = stream.take() else {
                    return false
                }
                tally.connected(after: took)
                relay.adopt(
                    client: client,
                    carrier: carrier,
                    screen: screen,
                    observer: isNetwork ? network : tally
                )
                return true
            }
            guard !isAdopted else { return await report(.connected) }
            if let client = waiting.take() { client.reset() }
            tally.leave()
            tally.fail(DialError(.forbidden, "its approval was taken back while it was being dialled"))
        } else {
            client.reset()
            tally.leave()
            guard let failure else { return }
            tally.fail(failure)
            await report(.failed(failure, count))
        }
    }
}
