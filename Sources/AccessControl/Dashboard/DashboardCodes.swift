import Crypto
import FoundationEssentials
import Model

/// The open one-time codes of the dashboard, in memory only. A code is for the user who asked for it.
///
/// Only the SHA-256 of a code is kept, and codes are found by it. So the time of an answer tells nothing of a code.
struct DashboardCodes: Sendable {
    /// Lifetime of a code in seconds.
    static let lifetime = 60
    /// Maximum number of open codes per user. A new one replaces the oldest.
    static let limitPerUser = 4

    /// The result of `check`.
    enum Check: Hashable {
        case accepted
        /// The reason, for the audit log.
        case refused(String)
    }

    private struct Entry: Sendable {
        let user: UInt32
        var expires: MonotonicTime
    }

    /// The codes by their digests.
    private var entries: [Data: Entry] = [:]

    /// Adds a code.
    ///
    /// - Returns: The time at which it expires.
    mutating func add(_ code: String, for user: UInt32, at now: MonotonicTime) -> MonotonicTime {
        expire(at: now)
        let own = entries.filter { $0.value.user == user }
        if own.count >= Self.limitPerUser, let oldest = own.min(by: { $0.value.expires < $1.value.expires }) {
            entries[oldest.key] = nil
        }
        let expires = now + Self.lifetime
        entries[Self.digest(of: code)] = Entry(user: user, expires: expires)
        return expires
    }

    /// Returns whether a code is valid for a user. Changes nothing, so another user cannot use a code up.
    ///
    /// - Parameters:
    ///   - code: The text that the client sent.
    ///   - owner: The user of the client's connection, if the kernel reports the user and the user is an owner.
    ///   - now: The current time.
    /// - Returns: The result, with the reason of a refusal.
    func check(_ code: String, by owner: UInt32?, at now: MonotonicTime) -> Check {
        guard let entry = entries[Self.digest(of: code)] else { return .refused("an unknown dashboard code") }
        guard now < entry.expires else { return .refused("an expired dashboard code") }
        guard let owner, owner == entry.user else { return .refused("a dashboard code of another user") }
        return .accepted
    }

    /// Removes a code after its use.
    mutating func remove(_ code: String) { entries[Self.digest(of: code)] = nil }

    /// Adjusts the times after the clock was set back. Each code expires at most `lifetime` seconds from now.
    mutating func clockWasSet(to now: MonotonicTime) {
        entries = entries.mapValues { Entry(user: $0.user, expires: min($0.expires, now + Self.lifetime)) }
    }

    private mutating func expire(at now: MonotonicTime) { entries = entries.filter { now < $0.value.expires } }

    private static func digest(of code: String) -> Data {
        Data(SHA256.hash(data: Data("patchbay dashboard code v1\0\(code)".utf8)))
    }
}
