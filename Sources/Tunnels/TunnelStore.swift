import FoundationEssentials
package import Logging
import State

/// Keeps the tunnels in a file, `tunnels.json`, so that they stand again after a restart.
package struct TunnelStore: Sendable {
    private let file: StateFile<TunnelLedger>

    /// - Parameters:
    ///   - directory: Exists and is ours alone.
    ///   - logger: Where a file that cannot be read is reported.
    package init(directory: String, logger: Logger) {
        file = StateFile("tunnels", in: directory, logger: logger)
    }

    /// What was saved last; an empty ledger when nothing was.
    func load() async -> TunnelLedger {
        await file.read { data in
            // At least the ids that can be made out are not given to other tunnels.
            let words = String(decoding: data, as: UTF8.self).split(separator: "\"")
            return TunnelLedger(next: (words.compactMap(TunnelLedger.number).max() ?? 0) &+ 1)
        } ?? TunnelLedger()
    }

    /// Replaces what is kept. When it returns, it is on the disk.
    ///
    /// - Throws: `TunnelError.notSaved`; then the file is as it was.
    func save(_ ledger: TunnelLedger) async throws(TunnelError) {
        do {
            try await file.write(ledger)
        } catch {
            throw .notSaved("\(error)")
        }
    }
}
