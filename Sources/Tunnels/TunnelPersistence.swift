import FoundationEssentials
package import Logging
import Model
package import SystemIO

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

/// Keeps the tunnels in a file, `tunnels.json`, so that they stand again after a restart.
package struct TunnelStore: Sendable {
    private let file: StateFile<PersistedTunnels>
    private let health: StateHealth?

    /// - Parameters:
    ///   - directory: Exists and is ours alone.
    ///   - health: Whether the folder can be written.
    ///   - logger: Where a file that cannot be read is reported.
    package init(directory: String, health: StateHealth? = nil, logger: Logger) {
        file = StateFile("tunnels", in: directory, health: health, logger: logger)
        self.health = health
    }

    /// - Throws: `TunnelError.notSaved` while a file of the folder cannot be written: a new tunnel is not promised then.
    func check() async throws(TunnelError) {
        if let problem = await health?.problems().first { throw .notSaved(problem) }
    }

    /// What was saved last; an empty ledger when nothing was.
    ///
    /// - Throws: `TunnelError.notRead`; then the file is as it was.
    func load() async throws(TunnelError) -> PersistedTunnels {
        do {
            return try await read()
        } catch {
            throw .notRead("\(error)")
        }
    }

    private func read() async throws(StateError) -> PersistedTunnels {
        try await file.read { data in
            // At least the ids that can be made out are not given to other tunnels.
            let words = String(decoding: data, as: UTF8.self).split(separator: "\"")
            return PersistedTunnels(next: (words.compactMap(PersistedTunnels.number).max() ?? 0) &+ 1)
        } ?? PersistedTunnels()
    }

    /// Replaces what is kept. When it returns, it is on the disk.
    ///
    /// - Throws: `TunnelError.notSaved`; then the file is as it was.
    func save(_ ledger: PersistedTunnels) async throws(TunnelError) {
        do {
            try await file.write(ledger)
        } catch {
            throw .notSaved("\(error)")
        }
    }
}
