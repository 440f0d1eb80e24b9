import FoundationEssentials
import Logging
import Model
import SystemIO

/// The part of the audit log that is kept. By default, all of it.
package struct AuditRetention: Hashable, Sendable {
    /// The age in seconds at which entries may be deleted; nil keeps them.
    package var maxAge: Int?
    /// The size in bytes that the log may have; nil for any size.
    package var maxBytes: Int?

    package init(maxAge: Int? = nil, maxBytes: Int? = nil) {
        self.maxAge = maxAge
        self.maxBytes = maxBytes
    }
}

extension AuditSegments {
    /// The oldest segments, and the number of their last entry.
    struct Expired: Equatable {
        let segments: [Int]
        let lastEntry: Int
    }

    /// Returns the segments that a retention does not keep, without gaps; nil if there are none. Only full segments
    /// expire.
    ///
    /// - Throws: `AccessError.notRead`.
    func expired(_ retention: AuditRetention, at now: Date, currentBytes: Int) throws(AccessError) -> Expired? {
        guard retention != AuditRetention(), !full.isEmpty else { return nil }
        let facts = full.map { number -> (bytes: Int, writtenAt: Int) in
            let status = FileStatus(atPath: path(of: number), followsLinks: false)
            return (status?.size ?? 0, status?.modificationTime ?? 0)
        }
        let now = now.timeIntervalSince1970
        var bytes = currentBytes + facts.reduce(0) { $0 + $1.bytes }
        var count = 0
        for fact in facts {
            let isOld = retention.maxAge.map { now - Double(fact.writtenAt) > Double($0) } ?? false
            let isTooMuch = retention.maxBytes.map { bytes > $0 } ?? false
            guard isOld || isTooMuch else { break }
            bytes -= fact.bytes
            count += 1
        }
        let expired = Array(full.prefix(count))
        guard let last = expired.last, let line = try ReverseLineReader(path(of: last)).lines(1).last,
            let entry = try? JSONCoding.decoder().decode(AuditEntry.self, from: line)
        else { return nil }
        return Expired(segments: expired, lastEntry: entry.number)
    }
}

/// The retention of the audit log.
extension AccessStore {
    /// Sets the retention, and deletes what it does not keep.
    package func setAuditRetention(_ retention: AuditRetention) {
        auditRetention = retention
        pruneAuditLog()
    }

    /// Deletes the segments that the retention does not keep, after an entry about them was written.
    func pruneAuditLog() {
        do {
            guard let expired = try expiredSegments() else { return }
            var event = AuditEvent(.pruned, by: .broker, from: .broker, detail: "entries up to \(expired.lastEntry)")
            event.through = expired.lastEntry
            try commit(ChangeSet([event]))
            delete(expired)
            logger.info("old entries of the audit log were deleted", metadata: ["through": "\(expired.lastEntry)"])
        } catch {
            logger.error("old entries of the audit log could not be deleted", metadata: ["reason": "\(error)"])
        }
    }
}
