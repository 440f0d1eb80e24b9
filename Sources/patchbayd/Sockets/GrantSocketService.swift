import API
import ServiceLifecycle
import SystemIO

/// Serves the sockets of grants, each until its grant ends.
struct GrantSocketService: Service {
    let sockets: GrantSockets
    /// Creates the server of a socket, for a grant.
    let makeServer: @Sendable (consuming Descriptor, String) -> APIServer

    func run() async throws {
        await sockets.openAll()
        await withDiscardingTaskGroup { group in
            for await grant in sockets.openings.cancelOnGracefulShutdown() {
                group.addTask { await sockets.run(grant, makeServer) }
            }
        }
    }
}
