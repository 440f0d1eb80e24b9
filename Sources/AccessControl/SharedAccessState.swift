import FoundationEssentials
import Model

/// What counts at this moment: the time, the ledger, and what lives under grants.
///
/// It stands behind one lock that nobody holds while a disk is waited for, so that whoever shows a token need not wait for what
/// somebody else has written. Looking whether a grant counts and opening something under it are one step, and so are ending the
/// grant and taking away what lives under it. Only the store, one operation after the other, changes who may do what.
struct SharedAccessState: Sendable {
    var clock: MonotonicWallClock
    var ledger: AccessState
    /// Rises whenever a grant ends, or an approval or a secret changes.
    private(set) var generation: UInt64 = 0
    var uses = GrantSessions()
    /// Grants whose last use is not on the disk yet.
    var unsavedUses: Set<String> = []
    /// Secrets that their apps did not take, as they are kept.
    var rejected: [EndpointID: Data] = [:]
    /// Told whenever something may end earlier than was known.
    var wakeUp: AsyncStream<Void>.Continuation?

    init(_ ledger: AccessState, _ clock: MonotonicWallClock) {
        self.ledger = ledger
        self.clock = clock
    }

    mutating func apply(_ change: ChangeSet) {
        ledger.apply(change)
        if change.altersTrust { generation &+= 1 }
    }

    /// Whether a grant counts at that time.
    func isLive(_ grant: String, at now: MonotonicTime) -> Bool {
        ledger.grants[grant].map { $0.end(at: now) == nil } ?? false
    }

    /// Notes that a grant is used.
    mutating func touch(_ grant: String, at now: MonotonicTime) {
        ledger.touch(grant, at: now)
        unsavedUses.insert(grant)
    }
}
