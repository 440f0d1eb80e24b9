/// A version of the Model Context Protocol, named by its date.
package enum ProtocolVersion: String, Sendable, CaseIterable, Comparable {
    case v2024_11_05 = "2024-11-05"
    case v2025_03_26 = "2025-03-26"
    case v2025_06_18 = "2025-06-18"
    case v2025_11_25 = "2025-11-25"
    case v2026_07_28 = "2026-07-28"

    /// From 2026-07-28 on the protocol has no handshake and no session; each request is self-contained.
    package var isStateless: Bool { self >= .v2026_07_28 }

    /// The version that `initialize` offers to a client that asks for an unknown version or for a stateless one.
    package static let latestWithHandshake = v2025_11_25

    /// The versions with a handshake, for messages.
    static let supported = allCases.filter { !$0.isStateless }.map(\.rawValue).joined(separator: ", ")

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
