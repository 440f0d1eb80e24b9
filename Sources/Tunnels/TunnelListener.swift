import Logging
import Model
import Synchronization
import SystemIO

/// The listening side of a tunnel. The relay's event loop accepts, checks and connects its clients. This object makes
/// the dials that the loop cannot make, and reports changes to the tunnel table.
final class TunnelListener: Sendable {
    /// The result of a dial, or a change of the listening socket, for the tunnel's state.
    enum Report: Sendable {
        case connected
        /// The reason, and the route generation at the start of the dial.
        case failed(DialError, UInt64)
        /// A dial succeeded where the last facts about the target led to a failure.
        case outdated
        /// The listening socket accepts no clients because of the error; nil if it accepts clients again.
        case listening(error: String?)
    }

    private enum Phase {
        case idle
        case serving
        case closed
    }

    private struct State {
        var phase = Phase.idle
        var target: TargetSnapshot?
    }

    let id: String
    /// The addresses that the tunnel listens on.
    let addresses: [SocketAddress]

    private let holder: String?
    private let configuration: TunnelConfiguration
    private let dependencies: TunnelDependencies
    private let listeners: [Listener]
    private let state = Mutex(State())
    private let events: AsyncStream<TunnelEvent>
    private let continuation: AsyncStream<TunnelEvent>.Continuation
    private let isClosed = AsyncLatch()

    /// Creates the listener of a tunnel on its open sockets.
    init(for entry: TunnelEntry, on listeners: [Listener], dependencies: TunnelDependencies) {
        id = entry.id
        holder = entry.holder
        self.listeners = listeners
        self.dependencies = dependencies
        addresses = listeners.map(\.address)
        let (events, continuation) = AsyncStream.makeStream(of: TunnelEvent.self)
        (self.events, self.continuation) = (events, continuation)
        configuration = TunnelConfiguration(
            sockets: listeners.map { TunnelConfiguration.ListeningSocket(number: $0.number, address: $0.address) },
            spec: entry.spec,
            owner: entry.owner,
            ownerCheck: dependencies.ownerCheck,
            limits: dependencies.limits,
            metrics: entry.metrics,
            report: { continuation.yield($0) }
        )
    }

    /// Serves clients until `close()` or cancellation. Returns after every dial has ended and the listeners are closed.
    func serve(_ report: @escaping @Sendable (Report) async -> Void) async {
        guard start() else { return }
        for address in addresses {
            guard let warning = Self.warning(about: address) else { continue }
            log("\(warning)", ["address": "\(address)"])
        }
        await withDiscardingTaskGroup { group in
            for await event in events {
                switch event {
                case .dial(let request): group.addTask { await self.dial(request, report) }
                case .connected: await report(.connected)
                case .listening(let error): await report(.listening(error: error))
                case .outOfDescriptors(let reason):
                    log("out of descriptors; clients wait in the accept queue", ["reason": "\(reason)"])
                }
            }
            group.cancelAll()
        }
        await dependencies.relay.stopListening(configuration.metrics)
        closeListeners()
    }

    /// Sets the facts for later connections; nil if each connection has to look the target up.
    func setTarget(_ target: TargetSnapshot?) {
        state.withLock { state in
            state.target = target
            // The relay knows the tunnel only while it is served.
            if state.phase == .serving { dependencies.relay.setTarget(target, of: configuration.metrics) }
        }
    }

    /// Closes the listeners and all connections. When it returns, the address is free and no more bytes are relayed.
    func close() async {
        continuation.finish()
        let wasIdle = state.withLock { state in
            defer { if state.phase == .idle { state.phase = .closed } }
            return state.phase == .idle
        }
        if wasIdle { closeListeners() }
        await isClosed.wait()
        await dependencies.relay.closeConnections(of: configuration.metrics)
    }

    /// Closes all connections over the network. When it returns, none of them relays another byte.
    ///
    /// A client with a dial in progress is reset if the dial used a network route.
    func closeNetworkConnections() async {
        state.withLock { $0.target = nil }
        await dependencies.relay.closeNetworkConnections(of: configuration.metrics)
    }

    private func start() -> Bool {
        state.withLock { state in
            guard state.phase == .idle else { return false }
            state.phase = .serving
            dependencies.relay.listen(configuration, target: state.target)
            return true
        }
    }

    private func closeListeners() {
        for listener in listeners { listener.close() }
        state.withLock { $0.phase = .closed }
        isClosed.open()
    }

    /// Dials the target for a connection that the event loop could not connect.
    private func dial(_ request: DialRequest, _ report: @escaping @Sendable (Report) async -> Void) async {
        await request.run { [self] in
            let generation = dependencies.routeGeneration.current
            do {
                dependencies.relay.dialed(request.token, .success(try await connect(request)))
                if request.attempt != nil { await report(.outdated) }
            } catch is CancellationError {
            } catch {
                let failure = error as? DialError ?? DialError(.failed, "the target could not be reached: \(error)")
                dependencies.relay.dialed(request.token, .failure(failure))
                await report(.failed(failure, generation))
            }
        }
    }

    private func connect(_ request: DialRequest) async throws -> RelayTarget {
        let (target, owner) = (configuration.spec.target, configuration.owner)
        if let refusal = await dependencies.policy?.check(of: target, for: holder, owner: owner)() { throw refusal }
        var plans = try await dependencies.planner.snapshot(of: target).plans
        if request.isRace, plans.count > 1 { plans.removeFirst() }
        // The failure says nothing about a route that has changed since.
        let isSame = request.attempt.map { $0.route == plans[0].route } == true
        return try await dependencies.relay.connect(plans, after: isSame ? request.attempt?.failure : nil)
    }

    private func log(_ message: Logger.Message, _ metadata: Logger.Metadata) {
        dependencies.logger.warning(message, metadata: metadata.merging(["tunnel": "\(id)"]) { old, _ in old })
    }

    /// A warning for an address that other machines can reach; nil for loopback addresses and unix sockets.
    private static func warning(about listener: SocketAddress) -> String? {
        guard listener.port != nil, !listener.isLoopback else { return nil }
        let address = listener.isUnspecified ? "an address of this machine" : "this address"
        return "every client that reaches \(address) over the network can use the tunnel; listen on 127.0.0.1 to "
            + "restrict it to its owner"
    }
}
