import ArgumentParser

/// The topics of `--only`.
enum Topic: String, CaseIterable, Codable, Sendable, ExpressibleByArgument {
    /// Every byte of a pattern in each direction; not timed.
    case integrity
    /// One stream in each direction and its processor time.
    case throughput
    case roundtrip
    case split
    /// Consecutive connections.
    case connect
    /// 10,000 consecutive connections.
    case endurance
    /// Concurrent connections.
    case burst
    /// Idle connections.
    case idle
}
