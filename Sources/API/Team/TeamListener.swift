package import Logging
import Model
package import ServiceLifecycle
package import SystemIO
package import Team
import Transport

extension MemberServerTLS: TransportSecurity {}

extension RunningTeam {
    /// Returns the team listener.
    package func listener(
        at address: SocketAddress,
        logger: Logger,
        makeServer: @escaping @Sendable (consuming Descriptor, UInt16, ListenerSecurity) -> APIServer
    ) -> any Service {
        let security = ListenerSecurity(tls, unauthenticated: UnauthenticatedConnectionLimiter())
        return ListenerService(
            "the team listener",
            advice: "other hosts cannot reach this one; change team.listen",
            address: { address },
            logger: logger
        ) { [listenerError] address in
            let server: APIServer
            do {
                let listener = try Listener(on: address)
                server = makeServer(try listener.duplicate(), address.port ?? 0, security)
                listener.close()
                listenerError.set(nil)
            } catch {
                listenerError.set(error)
                throw error
            }
            logger.info("the team listener is open", metadata: ["address": "\(address)"])
            try await server.run()
        }
    }
}
