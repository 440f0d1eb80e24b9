import SystemIO

/// What becomes known about the end of a carrier: whether its other side closed it, or the way to it went.
///
/// usbmuxd ends a stream in the same way for both. So its witness is asked, and the client hears nothing of the end until
/// there is an answer, or has been none for so long that usbmuxd does not answer any more.
struct EOFClassifier {
    enum Verdict {
        case closed
        case severed
        case pending
    }

    /// usbmuxd answers within a millisecond; while it ends it lives on for a tenth of a second and answers nobody.
    private static let limit = Duration.milliseconds(500)

    private enum State {
        case needless
        case ahead(any LinkChecker)
        case open(until: ContinuousClock.Instant)
        case over(Verdict)
    }

    private var state: State

    /// - Parameter witness: Nil where an end is always what it looks like.
    init(of witness: (any LinkChecker)?) {
        state = witness.map { .ahead($0) } ?? .needless
    }

    /// The stream has ended.
    ///
    /// - Returns: The witness, who is to be asked now; nil when he has been asked before, or there is none.
    mutating func begin(now: ContinuousClock.Instant) -> (any LinkChecker)? {
        guard case .ahead(let witness) = state else { return nil }
        state = .open(until: now + Self.limit)
        return witness
    }

    mutating func close(_ isWayThere: Bool) {
        if case .open = state { state = .over(isWayThere ? .closed : .severed) }
    }

    /// `pending` also before the end: a verdict is asked for only after it.
    func verdict(now: ContinuousClock.Instant) -> Verdict {
        switch state {
        case .needless: .closed
        case .ahead: .pending
        case .open(let end): now < end ? .pending : .severed
        case .over(let verdict): verdict
        }
    }
}

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
