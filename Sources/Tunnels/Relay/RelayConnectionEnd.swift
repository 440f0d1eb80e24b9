import SystemIO

/// Decides if EOF from a target is a normal close or a lost link.
///
/// usbmuxd closes the socket in the same way in both cases. At EOF, the relay therefore starts a link check and holds
/// back the client's EOF until the result. A check without a result in time counts as a lost link.
struct EOFClassifier {
    enum Result {
        case closed
        case linkLost
        case pending
    }

    private enum State {
        case notNeeded
        case waitingForEOF(LinkCheck)
        case checking(until: MonotonicInstant)
        case done(Result)
    }

    private var state: State

    /// Creates a classifier.
    ///
    /// - Parameter linkCheck: Nil if EOF is unambiguous, as with TCP.
    init(_ linkCheck: LinkCheck?) {
        state = linkCheck.map { .waitingForEOF($0) } ?? .notNeeded
    }

    /// Handles EOF from the target.
    ///
    /// - Parameter end: The time after which a missing result counts as a lost link.
    /// - Returns: The check if it has to be started now; nil if it was started before or is not needed.
    mutating func begin(until end: MonotonicInstant) -> LinkCheck? {
        guard case .waitingForEOF(let linkCheck) = state else { return nil }
        state = .checking(until: end)
        return linkCheck
    }

    /// Handles the result of the check; a late result is ignored.
    mutating func linkChecked(isReachable: Bool) {
        if case .checking = state { state = .done(isReachable ? .closed : .linkLost) }
    }

    /// The current classification. It is `pending` before EOF too; callers use it after EOF only.
    func result(now: MonotonicInstant) -> Result {
        switch state {
        case .notNeeded: .closed
        case .waitingForEOF: .pending
        case .checking(let end): now < end ? .pending : .linkLost
        case .done(let result): result
        }
    }
}

/// The addresses of a TCP client's connection: its own, and the one that it connected to.
typealias ClientAddresses = (client: SocketAddress, local: SocketAddress)

/// Tells if a client that sent EOF has disconnected, or has only shut down its sending side and still reads.
///
/// TCP does not distinguish the two. The difference matters if EOF cannot be forwarded to the target. A reading client
/// must get the device's response; a disconnected client must not occupy a usbmuxd stream. For clients on this machine,
/// the kernel's socket table tells if the socket is still open (sock_diag(7)).
struct ClientDisconnectProbe {
    private static let firstInterval = Duration.milliseconds(5)
    private static let maxInterval = Duration.milliseconds(500)

    private enum State {
        case notStarted
        case started(next: MonotonicInstant, interval: Duration)
        case known(isGone: Bool)
    }

    private var state = State.notStarted

    /// Looks the client up, at increasing intervals.
    ///
    /// - Parameters:
    ///   - addresses: The addresses of the client's connection, which is at EOF; nil if they are unknown.
    ///   - owners: The kernel's socket table.
    ///   - now: The time of this loop iteration.
    /// - Returns: True if the client's socket is closed. False if it is open or cannot be looked up, as for a client on
    ///   another machine.
    mutating func isGone(_ addresses: ClientAddresses?, owners: SocketOwnerLookup, now: MonotonicInstant) -> Bool {
        switch state {
        case .known(let isGone): return isGone
        case .started(let next, _) where now < next: return false
        case .started(_, let interval):
            state = .started(next: now + interval, interval: min(interval + interval, Self.maxInterval))
        case .notStarted:
            // A product would be a generic call: `Duration` multiplies by any integer.
            state = .started(next: now + Self.firstInterval, interval: Self.firstInterval + Self.firstInterval)
        }
        guard let addresses, addresses.client.isLoopback,
            let answer = try? owners.owner(of: addresses.client, connectedTo: addresses.local)
        else {
            state = .known(isGone: false)
            return false
        }
        guard answer == .closed else { return false }
        state = .known(isGone: true)
        return true
    }
}
