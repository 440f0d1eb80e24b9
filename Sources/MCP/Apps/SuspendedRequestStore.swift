import JSON

/// The requests that wait in an app for the answers of those who made them.
struct SuspendedRequestStore: Sendable {
    /// What a request must be to go on with one that waits.
    struct Subject: Hashable, Sendable {
        let holder: String
        let endpoint: String
        let method: String
        /// What was asked for, as a text, without what belongs to the asking.
        let params: String
    }

    private struct Entry: Sendable {
        let subject: Subject
        let interview: SuspendedRequest
        let since: Duration
    }

    /// How many may wait, of one user or grant and altogether; and how long.
    static let limitOfOne = 8
    static let limit = 64
    static let lifetime = Duration.seconds(300)
    /// Tells our states from apps' own.
    static let prefix = "patchbay-"

    private var entries: [String: Entry] = [:]

    /// Keeps a request until its caller comes back with what this gives: 128 bits that nobody can guess. What has waited for
    /// too long is given back, to be given up.
    ///
    /// - Throws: When there are too many.
    mutating func keep(
        _ interview: SuspendedRequest,
        _ subject: Subject,
        at now: Duration
    ) throws(RPCError) -> (key: String, old: [SuspendedRequest]) {
        let old = entries.filter { now - $0.value.since >= Self.lifetime }
        for key in old.keys { entries[key] = nil }
        guard entries.count < Self.limit,
            entries.values.count(where: { $0.subject.holder == subject.holder }) < Self.limitOfOne
        else { throw .inside("too many requests wait for answers: \(Self.limitOfOne) are the most for one caller") }
        let key = Self.prefix + SessionIDSigner.randomText()
        entries[key] = Entry(subject: subject, interview: interview, since: now)
        return (key, old.values.map(\.interview))
    }

    /// The request that waits under that key; each time once, and only for the same request of the same caller.
    mutating func take(_ key: String, _ subject: Subject) throws(RPCError) -> SuspendedRequest {
        guard let entry = entries[key], entry.subject == subject else {
            throw .invalidParams(
                "no request like this one waits under this requestState any more: make it anew without one"
            )
        }
        entries[key] = nil
        return entry.interview
    }
}
