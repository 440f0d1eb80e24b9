import SystemIO

/// Finds out whether a client whose stream has ended is gone, or has only shut its sending side down and reads on.
///
/// TCP does not say which. It matters where a carrier cannot pass the end on: a client that reads on is owed the device's
/// answer, one that is gone must not keep a place among the streams of usbmuxd. A client on this machine can be looked up:
/// nobody has its socket open any more (sock_diag(7)).
struct ClientDisconnectProbe {
    private static let firstPause = Duration.milliseconds(5)
    private static let longestPause = Duration.milliseconds(500)

    private enum State {
        case unasked
        case asked(next: ContinuousClock.Instant, pause: Duration)
        case known(isGone: Bool)
    }

    private var state = State.unasked

    /// - Parameters:
    ///   - client: The descriptor of our end of the client's connection, whose stream has ended.
    ///   - owners: Whom to ask.
    ///   - now: The time; the same question is not asked again at once.
    /// - Returns: False also where nobody can know: a client on another machine.
    mutating func isCertain(of client: CInt, asking owners: SocketOwnerLookup, now: ContinuousClock.Instant) -> Bool {
        switch state {
        case .known(let isGone): return isGone
        case .asked(let next, _) where now < next: return false
        case .asked(_, let pause): state = .asked(next: now + pause, pause: min(pause * 2, Self.longestPause))
        case .unasked: state = .asked(next: now + Self.firstPause, pause: Self.firstPause * 2)
        }
        guard let peer = SocketAddress.peer(of: client), peer.isLoopback, let local = SocketAddress.local(of: client),
            let answer = try? owners.owner(of: peer, connectedTo: local)
        else {
            state = .known(isGone: false)
            return false
        }
        guard answer == .nobody else { return false }
        state = .known(isGone: true)
        return true
    }
}
