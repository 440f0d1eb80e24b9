/// Counts wrong codes, so that nobody can try many: after 20 within an hour the gate is closed until an owner opens it.
///
/// Kept, so that a restart opens nothing.
struct CodeGate: Hashable, Sendable, Codable {
    static let limit = 20
    static let window = 3_600

    private var failures: [EffectiveTime] = []
    private(set) var isClosed = false

    mutating func failed(at now: EffectiveTime) {
        failures.removeAll { now >= $0 + Self.window }
        failures.append(now)
        isClosed = isClosed || failures.count >= Self.limit
    }

    mutating func reopen() { self = CodeGate() }
}
