/// A revision of the Model Context Protocol, by the date that is its name.
package enum ProtocolVersion: String, Sendable, CaseIterable, Comparable {
    case november2024 = "2024-11-05"
    case march2025 = "2025-03-26"
    case june2025 = "2025-06-18"
    case november2025 = "2025-11-25"
    case july2026 = "2026-07-28"

    /// From 2026-07-28 on there is no handshake and no session: each request says everything.
    package var isStateless: Bool { self >= .july2026 }

    /// What a client is offered that asks for one unknown to us, or for one without a handshake.
    package static let latestWithHandshake = november2025

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
