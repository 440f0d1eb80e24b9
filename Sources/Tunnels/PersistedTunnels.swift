import FoundationEssentials
import Model

/// The tunnels as they are kept on disk.
struct PersistedTunnels: Hashable, Sendable, Codable {
    struct Entry: Hashable, Sendable, Codable {
        let id: String
        let spec: TunnelSpec
        /// Nil in files of a time when nobody kept it: then it is the broker's own user.
        let owner: UInt32?
        /// The port that `tcp:0` got, which it keeps.
        let port: UInt16?
        let since: Date
    }

    /// The number of the next tunnel: ids are never used again, not even those of removed tunnels.
    var next: UInt64 = 1
    var tunnels: [Entry] = []

    /// The number of an id, `t7` is 7.
    static func number(of id: some StringProtocol) -> UInt64? { id.first == "t" ? UInt64(id.dropFirst()) : nil }
}
