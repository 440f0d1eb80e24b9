package import Model
import Synchronization

/// A log that was opened for a client.
package final class PhoneLog: Sendable {
    typealias Follower = @Sendable (PhoneLogPosition, LogBacklog) async throws -> Void

    /// The newest lines when the log was opened, the newest last.
    package let past: [PhoneLogLine]
    private let position: PhoneLogPosition
    private let redactor: @Sendable () -> SecretRedactor
    private let place: LogPlace
    private let follower: Follower

    init(
        _ past: PhoneLogPast,
        redactor: @escaping @Sendable () -> SecretRedactor,
        place: LogPlace,
        follower: @escaping Follower
    ) {
        let current = redactor()
        self.past = past.lines.map { PhoneLogLine($0, by: current) }
        position = past.position
        (self.redactor, self.place, self.follower) = (redactor, place, follower)
    }

    /// Passes on new lines until cancelled. While `deliver` waits, the oldest lines are dropped.
    ///
    /// - Throws: `Problem`, `DialError`, `CancellationError`, or the error of `deliver`.
    package func follow(_ deliver: ([PhoneLogEvent<PhoneLogLine>]) async throws -> Void) async throws {
        let backlog = LogBacklog()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [follower, position] in
                defer { backlog.finish() }
                try await follower(position, backlog)
            }
            defer { group.cancelAll() }
            while let events = await backlog.next() {
                let redactor = redactor()
                try await deliver(events.map { $0.redacted(by: redactor) })
            }
            try await group.next()
        }
    }
}

extension PhoneLogEvent<RawPhoneLogLine> {
    fileprivate func redacted(by redactor: SecretRedactor) -> PhoneLogEvent<PhoneLogLine> {
        switch self {
        case .line(let line): .line(PhoneLogLine(line, by: redactor))
        case .lost(let count): .lost(count)
        case .note(let text): .note(text)
        }
    }
}

/// The logs that are open: a limited number of each phone, and of each client there.
final class LogPlaces: Sendable {
    /// Each log needs a descriptor of the adb server, and a process on the phone.
    static let limitOfPhone = 16
    static let limitOfClient = 6

    private let counts = Mutex<[UDID: [String: Int]]>([:])

    /// Counts one more log, until the place is deallocated.
    ///
    /// - Throws: `Problem` at a limit.
    func take(_ udid: UDID, for client: String) throws(Problem) -> LogPlace {
        let isTaken = counts.withLock { counts in
            let phone = counts[udid] ?? [:]
            guard phone.values.reduce(0, +) < Self.limitOfPhone, phone[client, default: 0] < Self.limitOfClient else {
                return false
            }
            counts[udid, default: [:]][client, default: 0] += 1
            return true
        }
        guard isTaken else {
            throw Problem(
                .limit,
                "too many logs of phone \(udid) are open: \(Self.limitOfClient) of a client, and "
                    + "\(Self.limitOfPhone) in all, are the limit",
                hint: "end another patchbay log --follow"
            )
        }
        return LogPlace(of: self, udid, client)
    }

    fileprivate func release(_ udid: UDID, _ client: String) {
        counts.withLock { counts in
            let rest = (counts[udid]?[client] ?? 1) - 1
            counts[udid]?[client] = rest > 0 ? rest : nil
            if counts[udid]?.isEmpty == true { counts[udid] = nil }
        }
    }
}

/// The place of an open log.
final class LogPlace: Sendable {
    private let places: LogPlaces
    private let udid: UDID
    private let client: String

    fileprivate init(of places: LogPlaces, _ udid: UDID, _ client: String) {
        (self.places, self.udid, self.client) = (places, udid, client)
    }

    deinit { places.release(udid, client) }
}
