import Pairing
import Tunnels

/// Which tunnels were opened under which grants; they end with them.
///
/// Not kept: a tunnel of a grant lives as long as the grant, and no longer than the broker.
package actor GrantedTunnels {
    private let table: TunnelTable
    private let pairing: PairingStore
    private var uses: [String: GrantUse] = [:]

    init(table: TunnelTable, pairing: PairingStore) {
        self.table = table
        self.pairing = pairing
    }

    /// Puts tunnels under a grant. When the grant has ended in the meantime, they are removed.
    ///
    /// - Throws: `PairingError.refused` in that case.
    func adopt(_ ids: some Collection<String> & Sendable, under grant: String) async throws {
        do {
            for id in ids {
                let use = try await pairing.open(under: grant) { [self] in await cut(id) }
                uses[id] = use
            }
        } catch {
            for id in ids { try? await table.remove(id) }
            await forget(ids)
            throw error
        }
    }

    func ids(of grant: String) -> Set<String> { Set(uses.filter { $0.value.grant == grant }.keys) }

    /// They were removed otherwise.
    func forget(_ ids: some Collection<String> & Sendable) async {
        for id in ids {
            if let use = uses.removeValue(forKey: id) { await pairing.close(use) }
        }
    }

    /// Of those that were removed in whatever way, and not through here.
    func forgetAll(but living: Set<String>) async { await forget(uses.keys.filter { !living.contains($0) }) }

    private func cut(_ id: String) async {
        // When this returns, not one more byte passes. Nobody may have removed it before us.
        try? await table.remove(id)
        uses[id] = nil
    }
}
