import ArgumentParser

/// What `--only` chooses by.
enum Topic: String, CaseIterable, Codable, Sendable, ExpressibleByArgument {
    /// Every byte of a pattern, each way; not timed.
    case integrity
    /// One stream each way, and what it costs.
    case throughput
    case roundtrip
    case split
    /// Connections one after the other.
    case connect
    /// 10,000 of them.
    case endurance
    /// Connections at once.
    case burst
    /// Connections that stay and say nothing.
    case idle
}
