import CLinux
import Glibc
package import Model
import Synchronization
package import SystemIO

/// Relays the bytes of every tunnel on one thread, independent of the number of connections.
///
/// Flow control is pure back-pressure: the relay reads from one side only as fast as the other side accepts. Sends have
/// no timeout, and a stall of any length loses no byte. The thread runs from `init` to `stop()`.
package final class Relay: Sendable {
    private let commands = RelayCommandQueue()

    /// Starts the relay thread.
    ///
    /// - Parameters:
    ///   - idle: The idle timeout for devices that cannot receive the client's EOF
    ///     (`Connection.HalfClose.destroys`). After this time without a byte in either direction the connection is
    ///     closed.
    ///   - linkCheckTimeout: The time after which a link check without a result counts as a lost link. usbmuxd answers
    ///     within 1 ms. While it terminates, it keeps running for about 100 ms and answers no requests.
    package init(idle: Duration = .seconds(5), linkCheckTimeout: Duration = .milliseconds(500)) {
        let commands = commands
        startThread(named: "patchbay-relay") {
            RelayEventLoop(commands, idle: idle, linkCheckTimeout: linkCheckTimeout).run()
        }
    }

    /// Connects a client with a target and takes ownership of both.
    ///
    /// The observer receives the byte counts and the outcome, also if the relay has already stopped. With an inspector,
    /// the client's first bytes are inspected before the target receives any.
    package func adopt(
        client: consuming Descriptor,
        target: consuming Connection,
        inspector: RelayInspector? = nil,
        observer: any RelayObserver
    ) {
        adopt(client: client, target: RelayTarget(target), inspector: inspector, observer: observer)
    }

    func adopt(
        client: consuming Descriptor,
        target: RelayTarget,
        inspector: RelayInspector? = nil,
        observer: any RelayObserver
    ) {
        let connection = RelayCommandQueue.NewConnection(
            client: client.release(),
            target: target,
            inspector: inspector,
            observer: observer
        )
        if !commands.enqueue(.adopt(connection)) { connection.reject() }
    }

    /// Closes the connections of an observer over these routes that were adopted before the call.
    ///
    /// A connection that is being made over such a route is closed instead of being relayed. When the call returns, the
    /// connections are closed and relay no more bytes.
    package func closeConnections(of observer: any RelayObserver, over routes: RevokedRoutes = .all) async {
        await execute { .closeConnections(ObjectIdentifier(observer), over: routes, $0) }
    }

    /// Accepts clients for a tunnel until `stopListening`.
    func listen(_ tunnel: TunnelListener) { _ = commands.enqueue(.listen(tunnel)) }

    /// Sets the target of the tunnel with these counters.
    func setTarget(_ target: TargetSnapshot?, of metrics: TunnelMetrics) {
        _ = commands.enqueue(.setTarget(ObjectIdentifier(metrics), target))
    }

    /// Ends `listen`, and resets the clients that are not relayed yet. When it returns, the listening sockets may be
    /// closed.
    func stopListening(_ metrics: TunnelMetrics) async {
        await execute { .stopListening(ObjectIdentifier(metrics), $0) }
    }

    /// Starts a connect by plan.
    func connect(_ request: ConnectRequest) {
        if !commands.enqueue(.connect(request)) { request.complete(.failure(CancellationError())) }
    }

    /// Ends a connect, because its task was cancelled.
    func abandon(_ request: ConnectRequest) { _ = commands.enqueue(.abandon(request)) }

    /// Gives a connection the result of its fallback.
    func fallbackEnded(_ connection: ConnectionHandle, _ result: Result<RelayTarget, DialError>) {
        if !commands.enqueue(.fallbackEnded(connection, result)) { try? result.get().reject() }
    }

    /// Closes every connection, stops the thread, and returns after both have ended.
    package func stop() async { await execute { .stop($0) } }

    /// Returns when the relay thread has executed a command, or has stopped.
    private func execute(_ command: (CheckedContinuation<Void, Never>) -> RelayCommandQueue.Command) async {
        await withCheckedContinuation { continuation in
            if !commands.enqueue(command(continuation)) { continuation.resume() }
        }
    }
}

/// Observes relayed connections, for example for a tunnel's statistics.
///
/// Connections that share an observer form a group for `Relay.closeConnections(of:)`. Both methods are called on the
/// relay thread, which serves every connection, and must return immediately.
package protocol RelayObserver: AnyObject, Sendable {
    /// The numbers of bytes written to the target and to the client since the last call, and the time of this one.
    func relayed(up: Int, down: Int, at now: MonotonicInstant)

    /// The connection has ended and both descriptors are closed. Called exactly once per adopted connection.
    func ended(_ outcome: RelayOutcome)
}

/// The reason for a connection's end, and its byte counts.
package struct RelayOutcome: Hashable, Sendable {
    /// The reason for the end.
    package enum Reason: Hashable, Sendable {
        /// Both sides sent EOF and all bytes were delivered.
        case finished
        /// The client sent EOF, and the device sent no more data. EOF cannot be forwarded to a device over usbmuxd.
        case drained
        /// The client socket failed with this errno; the target was reset.
        case clientFailed(CInt)
        /// The target socket failed with this errno, or closed with undelivered client bytes. The client was reset.
        case targetFailed(CInt)
        /// The link to the target was lost: the phone was unplugged, or usbmuxd ended. The client was reset after every
        /// received byte was delivered.
        case linkLost
        /// The client's first request was rejected because a web page may have sent it. The target received no byte.
        case refused(BrowserGuard.Refusal)
        /// The broker closed the connection: the tunnel was removed, or the broker is stopping.
        case aborted
    }

    package let reason: Reason
    package let bytesUp: UInt64
    package let bytesDown: UInt64
}

extension RelayOutcome {
    /// Returns the outcome as a sentence; `failure` begins the one for a failed connection to the target.
    package func description(failure: String) -> String {
        let amount = "after \(bytesUp) bytes up and \(bytesDown) bytes down"
        return switch reason {
        case .finished: "finished \(amount)"
        case .drained: "finished \(amount); the device sent no more data"
        case .clientFailed(let code): "the client connection failed \(amount): \(SocketError.message(for: code))"
        case .targetFailed(let code): "\(failure) \(amount): \(SocketError.message(for: code))"
        case .linkLost: "the phone or usbmuxd disconnected \(amount)"
        case .refused(let refusal): "\(refusal)"
        case .aborted: "closed by the broker \(amount)"
        }
    }
}

/// The routes of the connections that are closed.
package enum RevokedRoutes: Sendable {
    case all
    /// Every route over the network, and every stream through another broker. USB connections stay.
    case network
    /// The addresses of these network routes.
    case addresses([Route])

    var isEmpty: Bool {
        if case .addresses(let routes) = self { routes.isEmpty } else { false }
    }

    func contains(_ route: Route?) -> Bool {
        switch self {
        case .all: true
        case .network: route?.isNetwork ?? true
        case .addresses(let routes): route.map { routes.contains(where: $0.hasSameAddress) } == true
        }
    }
}

/// A connected target on its way between threads. It holds the descriptor by number and owns it.
struct RelayTarget: Sendable {
    let number: CInt
    let halfClose: Connection.HalfClose
    var permits: [any Sendable] = []
    var linkCheck: LinkCheck?
    /// Nil if the planner does not know the route.
    var route: Route?

    /// Closes the stream without relaying.
    func reject() { Descriptor(owning: number).reset() }

    /// Adds what the plan of the stream prescribes.
    mutating func add(_ plan: ConnectPlan, _ permit: (any Sendable)?) {
        if let permit { permits.append(permit) }
        if let retained = plan.retained?() { permits.append(retained) }
        linkCheck = plan.linkCheck ?? linkCheck
        route = plan.route
    }
}

extension RelayTarget {
    /// Takes the descriptor of a connection.
    init(_ connection: consuming Connection) {
        linkCheck = connection.linkCheck
        let (number, halfClose, permit) = connection.release()
        (self.number, self.halfClose) = (number, halfClose)
        if let permit { permits = [permit] }
    }

    /// Returns the connection, which owns the descriptor.
    func connection() -> Connection {
        Connection(
            descriptor: Descriptor(owning: number),
            halfClose: halfClose,
            permit: permits.isEmpty ? nil : permits,
            linkCheck: linkCheck
        )
    }
}

/// Commands from other threads to the relay thread, in order.
final class RelayCommandQueue: Sendable {
    /// A command. It holds descriptors by number and owns them; the executing thread takes ownership.
    enum Command: Sendable {
        case adopt(NewConnection)
        /// Accept clients for a tunnel.
        case listen(TunnelListener)
        /// The target of a tunnel has changed; nil if it has to be looked up for each connection.
        case setTarget(ObjectIdentifier, TargetSnapshot?)
        /// Close the connections of a tunnel that are not relayed yet, and accept no more.
        case stopListening(ObjectIdentifier, CheckedContinuation<Void, Never>)
        /// Connect by a plan for a task, or end such a connect.
        case connect(ConnectRequest)
        case abandon(ConnectRequest)
        case fallbackEnded(ConnectionHandle, Result<RelayTarget, DialError>)
        /// The result of a link check.
        case linkChecked(connection: ConnectionHandle, isReachable: Bool)
        /// Close relayed connections over these routes, and mark those that are not relayed yet.
        case closeConnections(ObjectIdentifier, over: RevokedRoutes, CheckedContinuation<Void, Never>)
        case stop(CheckedContinuation<Void, Never>)
    }

    struct NewConnection: Sendable {
        let client: CInt
        let target: RelayTarget
        let inspector: RelayInspector?
        let observer: any RelayObserver

        /// Closes both sockets without relaying, because the relay has stopped.
        func reject() {
            Descriptor(owning: client).reset()
            target.reject()
            observer.ended(RelayOutcome(reason: .aborted, bytesUp: 0, bytesDown: 0))
        }
    }

    private struct State {
        var commands: [Command] = []
        var isClosed = false
    }

    /// Readable while the queue has commands.
    let wake: Descriptor
    private let state = Mutex(State())
    private let hasPending = Atomic(false)

    init() {
        let number = eventfd(0, CInt(EFD_NONBLOCK) | CInt(EFD_CLOEXEC))
        precondition(number >= 0, "eventfd failed: errno \(errno)")
        wake = Descriptor(owning: number)
    }

    /// Appends a command and wakes the relay thread.
    ///
    /// - Returns: False if the queue is closed; the command is then not executed.
    func enqueue(_ command: Command) -> Bool {
        let (isOpen, isFirst) = state.withLock { state in
            if state.isClosed { return (false, false) }
            state.commands.append(command)
            hasPending.store(true, ordering: .releasing)
            return (true, state.commands.count == 1)
        }
        if isFirst { eventfd_write(wake.number, 1) }
        return isOpen
    }

    /// Removes all commands. Called by the relay thread only.
    ///
    /// - Parameter isLast: True to reject later commands.
    /// - Returns: The commands, in order.
    func drain(isLast: Bool = false) -> [Command] {
        var count: eventfd_t = 0
        eventfd_read(wake.number, &count)
        return state.withLock { state in
            hasPending.store(false, ordering: .relaxed)
            state.isClosed = isLast
            defer { state.commands = [] }
            return state.commands
        }
    }

    /// True if the queue has commands. Cheap enough for frequent polling; true at the latest when `wake` is readable.
    var hasCommands: Bool { hasPending.load(ordering: .acquiring) }
}
