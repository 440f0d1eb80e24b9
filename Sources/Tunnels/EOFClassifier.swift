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
