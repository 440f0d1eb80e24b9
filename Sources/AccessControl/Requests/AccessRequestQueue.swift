import FoundationEssentials
import Model

/// Who on this machine asks for access and waits for a person's yes: the state of RFC 8628, in memory only.
///
/// The asker gets a handle, which nobody else knows, and a code, which it shows. A yes turns the handle into an invite for
/// this one redeemer, so that from there on everything that holds for invites holds.
struct AccessRequestQueue: Sendable {
    static let lifetime = 300
    static let limitPerUser = 8
    static let interval = 5

    struct Entry: Sendable {
        let request: AccessRequest
        let uid: UInt32
        let terms: AccessTerms
        let handle: Token
        var expires: MonotonicTime
        let isRunning: @Sendable () -> Bool
        var isDenied = false
        var interval = AccessRequestQueue.interval
        var asked: MonotonicTime
    }

    enum Poll {
        case waiting
        case denied
        case tooSoon(interval: Int)
        /// It is not, or no longer, a request: perhaps an invite by now.
        case unknown
    }

    /// By code.
    private var entries: [String: Entry] = [:]

    /// What waits for an answer, the oldest first.
    mutating func open(at now: MonotonicTime) -> [AccessRequest] {
        expire(at: now)
        return entries.values.filter { !$0.isDenied }.map(\.request).sorted { $0.expires < $1.expires }
    }

    /// Takes a request; whether the process that asks still runs is asked again before a yes counts.
    mutating func ask(
        _ terms: AccessTerms,
        by caller: AuditActor,
        uid: UInt32,
        at now: MonotonicTime,
        isRunning: @escaping @Sendable () -> Bool
    ) throws(AccessError) -> Entry {
        expire(at: now)
        guard entries.values.lazy.filter({ $0.uid == uid && !$0.isDenied }).count < Self.limitPerUser else {
            throw .limit("user \(uid) has \(Self.limitPerUser) requests open; answer them first: patchbay requests")
        }
        var code = UserCode.random()
        while entries[code] != nil { code = UserCode.random() }
        let expires = now + Self.lifetime
        let entry = Entry(
            request: AccessRequest(
                code: code,
                asker: caller,
                name: terms.name,
                permissions: terms.permissions,
                expires: expires.date
            ),
            uid: uid,
            terms: terms,
            handle: Token(random: .invite),
            expires: expires,
            isRunning: isRunning,
            asked: now
        )
        entries[code] = entry
        return entry
    }

    /// The request that a code is about; nil when there is none.
    mutating func find(_ typed: String, at now: MonotonicTime) -> Entry? {
        expire(at: now)
        return UserCode.normal(typed).flatMap { entries[$0] }.flatMap { $0.isDenied ? nil : $0 }
    }

    /// Takes a request away that has its answer.
    mutating func close(_ code: String) { entries[code] = nil }

    /// Notes a no; the asker learns of it when it asks next.
    mutating func deny(_ code: String) { entries[code]?.isDenied = true }

    /// How it stands, for the asker; who asks too often has to wait longer (RFC 8628, section 3.5).
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
        let isTooSoon = now < entry.asked + entry.interval
        entries[code]?.asked = now
        if isTooSoon {
            let interval = entry.interval + Self.interval
            entries[code]?.interval = interval
            return .tooSoon(interval: interval)
        }
        return .waiting
    }

    /// The clock was set back to this time: a request that waits has its whole lifetime from now, and may be asked about.
    mutating func clockWasSet(to now: MonotonicTime) {
        entries = entries.mapValues { entry in
            var entry = entry
            entry.expires = min(entry.expires, now + Self.lifetime)
            entry.asked = min(entry.asked, now)
            return entry
        }
    }

    private mutating func expire(at now: MonotonicTime) { entries = entries.filter { now < $0.value.expires } }
}

/// What a person types to approve a request: eight of twenty consonants, shown `WDJB-MJHT` (RFC 8628, section 6.1).
///
/// 34.6 bits, which is little: it lives five minutes, in memory only, and wrong ones are counted.
enum UserCode {
    static let letters = Array("BCDFGHJKLMNPQRSTVWXZ")
    static let length = 8

    static func random() -> String {
        shown((0..<length).map { _ in letters[Int.random(in: letters.indices)] })
    }

    /// The code in its one spelling: case, hyphens and blanks do not matter; nil when a letter is none of the twenty.
    static func normal(_ typed: some StringProtocol) -> String? {
        // No code is longer than this with all the hyphens that people put in.
        guard typed.utf8.prefix(33).count <= 32 else { return nil }
        let typed = typed.uppercased().filter { $0 != "-" && $0 != " " }
        guard typed.count == length, typed.allSatisfy(letters.contains) else { return nil }
        return shown(Array(typed))
    }

    private static func shown(_ letters: [Character]) -> String { String(letters[..<4]) + "-" + String(letters[4...]) }
}

/// Counts wrong codes, so that nobody can try many: after 20 within an hour the gate is closed until an owner opens it.
///
/// Kept, so that a restart opens nothing.
struct UserCodeAttemptLimiter: Hashable, Sendable, Codable {
    static let limit = 20
    static let window = 3_600

    private var failures: [MonotonicTime] = []
    private(set) var isClosed = false

    mutating func failed(at now: MonotonicTime) {
        failures.removeAll { now >= $0 + Self.window }
        failures.append(now)
        isClosed = isClosed || failures.count >= Self.limit
    }

    /// The clock was set back to this time: a failure in the future counts as one of now.
    mutating func clockWasSet(to now: MonotonicTime) { failures = failures.map { min($0, now) } }

    mutating func reopen() { self = UserCodeAttemptLimiter() }
}
