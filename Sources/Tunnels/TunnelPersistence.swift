import FoundationEssentials
package import Logging
import Model
package import SystemIO

/// The state file's content: the persistent tunnels.
struct PersistedTunnels: Hashable, Sendable, Codable {
    struct Entry: Hashable, Sendable, Codable {
        let id: String
        let spec: TunnelSpec
        /// The owner's UID. Nil in files of earlier versions, which did not store the owner; the broker's own user is
        /// then the owner.
        let owner: UInt32?
        /// The port assigned to `tcp:0`, which the tunnel keeps.
        let port: UInt16?
        let createdAt: Date
    }

    /// The number of the next tunnel. IDs are never reused, even after a tunnel is removed.
    var next: UInt64 = 1
    var tunnels: [Entry] = []

    /// The number of an ID: 7 for `t7`.
    static func number(of id: some StringProtocol) -> UInt64? { id.first == "t" ? UInt64(id.dropFirst()) : nil }
}

/// Stores the tunnels in the file `tunnels.json` and restores them after a restart.
package struct TunnelStore: Sendable {
    private let file: StateFile<PersistedTunnels>
    private let health: StateFileHealthTracker?

    /// Creates a store.
    ///
    /// - Parameters:
    ///   - directory: An existing directory that only the broker uses.
    ///   - health: Reports if the directory is writable.
    ///   - logger: Logs unreadable files.
    package init(directory: String, health: StateFileHealthTracker? = nil, logger: Logger) {
        file = StateFile("tunnels", in: directory, health: health, logger: logger)
        self.health = health
    }

    /// Checks that new tunnels can be saved.
    ///
    /// - Throws: `TunnelError.notSaved` while a file of the directory cannot be written.
    func checkWritable() async throws(TunnelError) {
        if let problem = await health?.problems().first { throw .notSaved(problem) }
    }

    /// Returns the saved tunnels; an empty value if there is no file.
    ///
    /// - Throws: `TunnelError.notRead`; the file is then unchanged.
    func load() async throws(TunnelError) -> PersistedTunnels {
        do {
            let tunnels = try await file.read { data in
                // The recognizable IDs of a damaged file are not assigned to other tunnels.
                let words = String(decoding: data, as: UTF8.self).split(separator: "\"")
                return PersistedTunnels(next: (words.compactMap(PersistedTunnels.number).max() ?? 0) &+ 1)
            }
            return tunnels ?? PersistedTunnels()
        } catch {
            throw .notRead("\(error)")
        }
    }

    /// Replaces the saved tunnels. Returns after the file is on disk.
    ///
    /// - Throws: `TunnelError.notSaved`; the file is then unchanged.
    func save(_ tunnels: PersistedTunnels) async throws(TunnelError) {
        do {
            try await file.write(tunnels)
        } catch {
            throw .notSaved("\(error)")
        }
    }
}
