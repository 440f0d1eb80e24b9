package import Model
package import AccessControl
import SystemIO
import Synchronization

/// Finding out whether an app wants a secret, and trying one before it is kept.
extension AppProxy {
    private static let tryingLimit = Duration.seconds(3)

    package func takes(_ secret: EndpointSecret, at endpoint: Endpoint, for caller: AgentCaller) async -> Bool? {
        await lets(in: caller, at: endpoint) { $0.map { AuthorizedRoute($0.route, secret: secret) } }
    }

    package func isOpen(_ endpoint: Endpoint, for caller: AgentCaller) async -> Bool? {
        if wantsSecret(endpoint) { return false }
        let isOpen = await lets(in: caller, at: endpoint) { $0 }
        if isOpen == false { noteNeed(of: endpoint.id, of: endpoint) }
        return isOpen
    }

    package func wantsSecret(_ endpoint: Endpoint) -> Bool {
        guard let wanting = entries.withLock({ $0[endpoint.id]?.wanting }) else { return false }
        return wanting == endpoint.launch
    }

    /// Notes the launch that wants a token; nil is none any more.
    func noteNeed(of id: EndpointID, of endpoint: Endpoint?) {
        entries.withLock { $0[id]?.wanting = endpoint?.launch }
    }

    /// Whether the app lets a caller in by these passages; nil where it cannot be asked.
    private func lets(
        in caller: AgentCaller,
        at endpoint: Endpoint,
        by passages: ([AuthorizedRoute]) -> [AuthorizedRoute]
    ) async -> Bool? {
        guard let (_, clearance) = try? await admit(caller, to: endpoint) else { return nil }
        let passages = passages(clearance.passages)
        // Not the line that is there: it knows this launch already, and would not ask again.
        let line = makeLine(to: endpoint.id)
        do {
            let met = try await withDeadline(Self.tryingLimit, clock: clock) {
                try await line.meet(endpoint, by: passages)
            }
            return met.map { _ in true }
        } catch Trouble.wantsSecret {
            return false
        } catch {
            return nil
        }
    }
}

extension Endpoint {
    /// The launch that its first route leads to.
    var launch: UpstreamSession.Launch? { routes.first.map { UpstreamSession.Launch(boot: boot, port: $0.port) } }
}
