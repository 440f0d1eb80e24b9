import Model
import Pairing
import Registry
import Tunnels

/// What persons say of endpoints: kept by pairing, shown in the list, and obeyed by the tunnels.
struct Trust: Sendable {
    let pairing: PairingStore
    let registry: EndpointRegistry
    let tunnels: TunnelTable

    /// Says yes to an endpoint where it is now; when it returns, the list says so.
    ///
    /// - Throws: `PairingError`.
    @discardableResult
    func approve(_ endpoint: Endpoint, by caller: Caller, from origin: Origin) async throws -> Approval {
        let approval = try await pairing.approve(endpoint, by: caller, from: origin)
        await tell(endpoint.id)
        return approval
    }

    /// Takes a yes back. When it returns, nothing goes any more to where it was only that yes which let it go.
    ///
    /// - Throws: `PairingError.notSaved`, after which it is taken back and cut until the broker stops.
    func withdraw(from id: EndpointID, by caller: Caller, from origin: Origin) async throws {
        let endpoint = try? await registry.endpoint(id)
        let id = endpoint?.id ?? id
        guard await pairing.approval(of: id) != nil else { return }
        var failure: (any Error)?
        do { try await pairing.withdrawApproval(of: id, by: caller, from: origin) } catch { failure = error }
        await tell(id)
        // What the owner wrote down needs no other yes.
        if endpoint?.sources != [.config] { await cut(id) }
        if let failure { throw failure }
    }

    /// Gives pairing an app's own token; on the cable that is a yes, too.
    ///
    /// - Throws: `PairingError`.
    func keep(
        _ secret: EndpointSecret,
        of endpoint: Endpoint,
        on port: UInt16?,
        by caller: Caller,
        from origin: Origin
    ) async throws {
        try await pairing.setSecret(secret, of: endpoint, on: port, by: caller, from: origin)
        await tell(endpoint.id)
    }

    /// Until what was told is what is kept: of two who say something at once, either may be the later one.
    private func tell(_ id: EndpointID) async {
        var told: Approval?
        repeat {
            told = await pairing.approval(of: id)
            await registry.approve(told, of: id)
        } while await pairing.approval(of: id) != told
    }

    private func cut(_ id: EndpointID) async {
        var ids: Set<String> = []
        for tunnel in await tunnels.list() {
            guard case .endpoint(let target) = tunnel.spec.target else { continue }
            // It may have been made when the endpoint had another id.
            if target == id { ids.insert(tunnel.id) }
            if let endpoint = try? await registry.endpoint(target), endpoint.id == id { ids.insert(tunnel.id) }
        }
        await tunnels.sever(ids)
        await tunnels.reconsider()
    }
}
