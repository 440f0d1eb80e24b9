import FoundationEssentials
package import Logging
package import SystemIO

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
