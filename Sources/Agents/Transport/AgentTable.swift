import AccessControl
import Apps
import Crypto
import FoundationEssentials
import Model

/// The agents that use MCP now or did so lately, for people: their programs, their calls, and what runs.
///
/// A client of MCP 2026-07-28 has no session. Its requests belong together by their holder and the name of its program.
struct AgentTable: Sendable {
    /// The agent of a request.
    struct Key: Hashable, Sendable {
        let id: String
        let holder: String
    }

    private struct Entry: Sendable {
        var client: AgentSession.Client?
        let name: SanitizedText
        let grant: String?
        let endpoint: EndpointID?
        let startedAt: Date
        var lastSeenAt: Date
        var lastCallAt: Date?
        var calls = 0
        var inFlight: [Int: AgentSession.Call] = [:]
    }

    /// The maximum number of agents. Those without a running call make room first.
    static let limit = 256
    /// The time in seconds after which an agent without a request is no longer listed.
    static let retention = 3_600.0

    private var entries: [Key: Entry] = [:]
    private var lastCall = 0

    /// Records a request of an agent.
    mutating func touch(
        _ key: Key,
        client: AgentSession.Client?,
        of principal: Principal,
        at endpoint: EndpointID?,
        now: Date
    ) {
        if entries[key] == nil {
            makeRoom(at: now)
            entries[key] = Entry(
                client: client,
                name: principal.leaseHolder.name,
                grant: principal.grant?.id,
                endpoint: endpoint,
                startedAt: now,
                lastSeenAt: now
            )
        }
        if let client { entries[key]?.client = client }
        entries[key]?.lastSeenAt = now
    }

    /// Records the beginning of a call of an agent that `touch` has recorded.
    ///
    /// - Returns: The number for `endCall`.
    mutating func beginCall(_ call: AgentSession.Call, of key: Key) -> Int {
        lastCall += 1
        entries[key]?.inFlight[lastCall] = call
        entries[key]?.lastCallAt = call.startedAt
        entries[key]?.calls += 1
        return lastCall
    }

    /// The program of an agent; nil if it has not named itself.
    func client(of key: Key) -> AgentSession.Client? { entries[key]?.client }

    mutating func endCall(_ number: Int, of key: Key) { entries[key]?.inFlight[number] = nil }

    /// Removes an agent that has ended its session.
    mutating func remove(_ key: Key) { entries[key] = nil }

    /// The agents, those with the newest calls first.
    func sessions(at now: Date) -> [AgentSession] {
        entries.filter { isListed($0.value, at: now) }.map { key, entry in
            AgentSession(
                id: Self.publicID(of: key),
                client: entry.client,
                name: entry.name,
                grant: entry.grant,
                endpoint: entry.endpoint,
                startedAt: entry.startedAt,
                lastCallAt: entry.lastCallAt,
                calls: entry.calls,
                inFlight: entry.inFlight.sorted { $0.key < $1.key }.map(\.value)
            )
        }
        .sorted { ($0.lastCallAt ?? $0.startedAt, $0.id) > ($1.lastCallAt ?? $1.startedAt, $1.id) }
    }

    private func isListed(_ entry: Entry, at now: Date) -> Bool {
        !entry.inFlight.isEmpty || now.timeIntervalSince(entry.lastSeenAt) < Self.retention
    }

    private mutating func makeRoom(at now: Date) {
        entries = entries.filter { isListed($0.value, at: now) }
        guard entries.count >= Self.limit else { return }
        let oldest = entries.min { one, other in
            (one.value.inFlight.isEmpty ? 0 : 1, one.value.lastSeenAt) < (
                other.value.inFlight.isEmpty ? 0 : 1, other.value.lastSeenAt
            )
        }
        if let oldest { entries[oldest.key] = nil }
    }

    /// Returns an ID for lists, from which the ID of the MCP session cannot be found.
    private static func publicID(of key: Key) -> String {
        let digest = SHA256.hash(data: Data("patchbay agent v1\0\(key.holder)\0\(key.id)".utf8))
        return String(digest.reduce(into: "") { $0 += ($1 < 16 ? "0" : "") + String($1, radix: 16) }.prefix(16))
    }
}

extension AgentSession.Client {
    /// Reads `clientInfo` of MCP; nil without a name.
    init?(_ info: JSON?) {
        guard let name = info?["name"]?.string, !name.isEmpty else { return nil }
        self.init(name: SanitizedText(name), version: info?["version"]?.string.map { SanitizedText($0) })
    }
}
