package import Model
package import Pairing
import Sockets

/// Trying a secret before it is kept.
extension AppDesk {
    private static let tryingLimit = Duration.seconds(3)

    package func takes(_ secret: EndpointSecret, at endpoint: Endpoint, for caller: AgentCaller) async -> Bool? {
        guard let (_, clearance) = try? await admit(caller, to: endpoint) else { return nil }
        let passages = clearance.passages.map { Passage($0.route, secret: secret) }
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
