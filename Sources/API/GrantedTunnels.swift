package import Pairing
package import Tunnels

/// Which tunnels were opened under which grants; they end with them.
///
/// Not kept: a tunnel of a grant lives as long as the grant, and no longer than the broker.
package actor GrantedTunnels {
    private let table: TunnelTable
    private let pairing: PairingStore
    private var uses: [String: GrantUse] = [:]

    package init(table: TunnelTable, pairing: PairingStore) {
        self.table = table
        self.pairing = pairing
    }

    /// Puts tunnels under a grant. When the grant has ended in the meantime, they are removed.
    ///
    /// - Throws: `PairingError.refused` in that case.
    func adopt(_ ids: some Collection<String> & Sendable, under grant: String) async throws {
        do {
            for id in ids {
                let use = try pairing.open(under: grant) { [self] in await cut(id, of: grant) }
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
            if let use = uses.removeValue(forKey: id) { pairing.close(use) }
        }
    }

    /// Of those that were removed in whatever way, and not through here.
    func forgetAll(but living: Set<String>) async { await forget(uses.keys.filter { !living.contains($0) }) }

    /// When this returns, not one more byte passes.
    ///
    /// A grant ends with a cut for each of its tunnels. The first that comes here takes all of them, so that the relay does it
    /// in one turn; the others wait behind it in the table, and find nothing.
    private func cut(_ id: String, of grant: String) async {
        let ids = ids(of: grant).union([id])
        await table.release(ids)
        for id in ids { uses[id] = nil }
    }
}
