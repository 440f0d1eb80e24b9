import FoundationEssentials
import Model

/// Pending access requests of local processes (RFC 8628) and of browsers (OAuth), kept in memory only.
///
/// The requester gets a secret handle (RFC 8628 `device_code`) and a user code to show. Approval turns the handle into
/// an invite for this redeemer, so all rules for invites apply from then on.
struct AccessRequestQueue: Sendable {
    /// Lifetime of a request in seconds.
    static let lifetime = 300
    /// Maximum number of pending requests of one user, and of one address.
    static let limitPerRequester = 8
    /// Maximum number of pending requests from other machines.
    static let remoteLimit = 64
    /// Poll interval in seconds. Each early poll adds the same amount (RFC 8628, section 3.5).
    static let interval = 5

    /// The user or the address whose requests are counted together.
    enum Requester: Hashable, CustomStringConvertible {
        case user(UInt32)
        case address(String)

        var description: String {
            switch self {
            case .user(let uid): "user \(uid)"
            case .address(let address): address
            }
        }

        var isRemote: Bool { if case .address = self { true } else { false } }
    }

    /// A request with its secret handle and its poll interval.
    struct Entry: Sendable {
        var request: AccessRequest
        let requester: Requester
        /// The invite that the handle becomes when an owner approves the request.
        var inviteSpec: InviteSpec
        let handle: Token
        var expires: MonotonicTime
        let isRunning: @Sendable () -> Bool
        var isDenied = false
        var interval = AccessRequestQueue.interval
        var lastPolled: MonotonicTime

        /// Returns the entry with the part of its permissions that an owner approves.
        ///
        /// - Throws: `AccessError.tooWide` for more than was asked.
        func limited(by limits: AccessRequestLimits) throws(AccessError) -> Entry {
            let permissions = limits.applied(to: request.permissions)
            guard permissions.isSubset(of: request.permissions) else {
                throw .tooWide(
                    "\(request.userCode) asks for \(request.permissions) on \(request.permissions.selector.summary), "
                        + "and an approval gives a part of that"
                )
            }
            var entry = self
            entry.request.permissions = permissions
            entry.inviteSpec.permissions = permissions
            try entry.inviteSpec.check()
            return entry
        }

        var auditDetail: String {
            if request.authorization != nil { return "asked by \(requester) over OAuth for \(request.permissions)" }
            guard case .process(let uid, let pid, let executable) = request.requester else {
                return "\(request.permissions)"
            }
            return "asked by \(executable) (user \(uid), process \(pid)) for \(request.permissions)"
        }
    }

    /// The result of a poll.
    enum Poll {
        case waiting
        case denied
        case tooSoon(interval: Int)
        /// The handle is not, or no longer, a request. An approved request is an invite by now.
        case unknown
    }

    /// Requests by user code.
    private var entries: [String: Entry] = [:]

    /// Returns the requests that wait for approval, oldest first. A request ends with its process.
    mutating func pending(at now: MonotonicTime) -> [AccessRequest] {
        expire(at: now)
        let waiting = entries.values.filter { !$0.isDenied && $0.isRunning() }
        return waiting.map(\.request).sorted { $0.expiresAt < $1.expiresAt }
    }

    /// Creates a request. `isRunning` is checked again before an approval takes effect.
    ///
    /// - Throws: `AccessError.limit`.
    mutating func create(
        _ invite: InviteSpec,
        named name: SanitizedText,
        by caller: AuditActor,
        of requester: Requester,
        authorization: RequestedAuthorization? = nil,
        at now: MonotonicTime,
        isRunning: @escaping @Sendable () -> Bool = { true }
    ) throws(AccessError) -> Entry {
        expire(at: now)
        entries = entries.filter { $0.value.requester != requester || $0.value.isRunning() }
        try requirePlace(for: requester)
        var code = UserCode.random()
        while entries[code] != nil { code = UserCode.random() }
        let expires = now + Self.lifetime
        let entry = Entry(
            request: AccessRequest(
                userCode: code,
                requester: caller,
                // Limits the length, because owners read the name in tables next to what they approve.
                name: SanitizedText(name.text),
                permissions: invite.permissions,
                expiresAt: expires.date,
                authorization: authorization
            ),
            requester: requester,
            inviteSpec: invite,
            handle: Token(random: .invite),
            expires: expires,
            isRunning: isRunning,
            lastPolled: now
        )
        entries[code] = entry
        return entry
    }

    private func requirePlace(for requester: Requester) throws(AccessError) {
        let waiting = entries.values.lazy.filter { !$0.isDenied }
        guard waiting.filter({ $0.requester == requester }).count < Self.limitPerRequester else {
            throw .limit(
                "\(requester) has \(Self.limitPerRequester) pending requests; end one of these programs, or wait for an owner's answer"
            )
        }
        guard !requester.isRemote || waiting.filter(\.requester.isRemote).count < Self.remoteLimit else {
            throw .limit("\(Self.remoteLimit) requests from other machines wait for an owner's answer; try again later")
        }
    }

    /// Returns the request with a user code; nil when there is none.
    mutating func find(_ typed: String, at now: MonotonicTime) -> Entry? {
        expire(at: now)
        return UserCode.normalized(typed).flatMap { entries[$0] }.flatMap { $0.isDenied ? nil : $0 }
    }

    /// Removes an answered request.
    mutating func remove(_ code: String) { entries[code] = nil }

    /// Denies a request. The requester learns this at its next poll.
    mutating func deny(_ code: String) { entries[code]?.isDenied = true }

    /// Returns the state of a request by its user code, as often as it is asked.
    mutating func state(of code: String, at now: MonotonicTime) -> Poll {
        expire(at: now)
        return entries[code].map { $0.isDenied ? .denied : .waiting } ?? .unknown
    }

    /// Returns the state of a request for its requester. Polling too early increases the interval (RFC 8628, section
    /// 3.5).
    mutating func poll(_ handle: Token, at now: MonotonicTime) -> Poll {
        expire(at: now)
        let digest = handle.digest
        guard let (code, entry) = entries.first(where: { $0.value.handle.id == handle.id }),
            digest == entry.handle.digest
        else { return .unknown }
        if entry.isDenied {
            entries[code] = nil
            return .denied
        }
        let isTooSoon = now < entry.lastPolled + entry.interval
        entries[code]?.lastPolled = now
        if isTooSoon {
            let interval = entry.interval + Self.interval
            entries[code]?.interval = interval
            return .tooSoon(interval: interval)
        }
        return .waiting
    }

    /// Adjusts the times after the clock was set back. Each pending request expires at most `lifetime` seconds from
    /// now, and can be polled.
    mutating func clockWasSet(to now: MonotonicTime) {
        entries = entries.mapValues { entry in
            var entry = entry
            entry.expires = min(entry.expires, now + Self.lifetime)
            entry.lastPolled = min(entry.lastPolled, now)
            return entry
        }
    }

    private mutating func expire(at now: MonotonicTime) { entries = entries.filter { now < $0.value.expires } }
}

/// The user code that a person types to approve a request: eight of twenty consonants, shown as `WDJB-MJHT` (RFC 8628,
/// section 6.1).
///
/// A code has only 34.6 bits. Therefore codes live five minutes, in memory only, and wrong codes are limited.
enum UserCode {
    static let letters = Array("BCDFGHJKLMNPQRSTVWXZ")
    static let length = 8

    static func random() -> String {
        formatted((0..<length).map { _ in letters[Int.random(in: letters.indices)] })
    }

    /// Returns the canonical form, ignoring case, hyphens and spaces; nil when a letter is not one of the twenty.
    static func normalized(_ typed: some StringProtocol) -> String? {
        // Longer than any code with all the hyphens that people type.
        guard typed.utf8.prefix(33).count <= 32 else { return nil }
        let typed = typed.uppercased().filter { $0 != "-" && $0 != " " }
        guard typed.count == length, typed.allSatisfy(letters.contains) else { return nil }
        return formatted(Array(typed))
    }

    private static func formatted(_ letters: [Character]) -> String {
        String(letters[..<4]) + "-" + String(letters[4...])
    }
}

/// Limits wrong user codes. After 20 within one hour, requests are closed until an owner reopens them.
///
/// Saved in the database, so that a restart does not reopen requests.
struct UserCodeAttemptLimiter: Hashable, Sendable, Codable {
    /// Number of wrong codes within `window` seconds that closes requests.
    static let limit = 20
    static let window = 3_600

    private var failures: [MonotonicTime] = []
    private(set) var isClosed = false

    mutating func recordFailure(at now: MonotonicTime) {
        failures.removeAll { now >= $0 + Self.window }
        failures.append(now)
        isClosed = isClosed || failures.count >= Self.limit
    }

    /// Adjusts the times after the clock was set back. A failure in the future counts as one of now.
    mutating func clockWasSet(to now: MonotonicTime) { failures = failures.map { min($0, now) } }

    mutating func reopen() { self = UserCodeAttemptLimiter() }
}
