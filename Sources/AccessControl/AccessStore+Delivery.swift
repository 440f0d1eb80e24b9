import Synchronization

/// What a delivery to an app needs of pairing, so that none happens after the end of what allowed it.
extension AccessStore {
    /// The state of grants, approvals and secrets: ask for it before you look up what a delivery needs.
    package nonisolated var generation: UInt64 { books.withLock { $0.generation } }

    /// Runs the write of a delivery, if nothing that could allow it has ended or changed since a generation.
    ///
    /// No grant ends and no approval changes while the write runs, so the write must not block.
    /// - Parameters:
    ///   - grant: The caller's grant; nil for an owner.
    ///   - generation: What `generation` was before the delivery's routes and secret were looked up.
    ///   - write: Returns at once.
    /// - Returns: Nil when the write was not run.
    /// - Throws: What the write throws.
    package nonisolated func deliver<Value: Sendable, Failure: Error>(
        under grant: String?,
        since generation: UInt64,
        _ write: () throws(Failure) -> Value
    ) throws(Failure) -> Value? {
        let reading = reading()
        return try books.withLock { (books) throws(Failure) -> Value? in
            guard books.generation == generation else { return nil }
            if let grant {
                let now = books.clock.advance(to: reading)
                guard books.isLive(grant, at: now) else { return nil }
            }
            return try write()
        }
    }
}
