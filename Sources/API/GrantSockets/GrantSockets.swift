package import AccessControl
package import Logging
import Model
import ServiceLifecycle
package import SystemIO

/// The unix sockets of grants: opens each one with its grant, and closes it before the end of the grant is reported.
///
/// A socket is a file in a folder. The folder can be mounted into a container, where the socket then works also after a
/// restart of the broker, which creates a new file.
package actor GrantSockets {
    private struct OpenSocket {
        let listener: Listener
        /// The server, while it runs.
        var server: APIServer?
    }

    private let accessStore: AccessStore
    private let places: GrantSocketPlaces
    private let logger: Logger
    private var sockets: [String: OpenSocket] = [:]
    private let queue: AsyncStream<String>.Continuation
    /// The grants whose sockets are to be served.
    fileprivate nonisolated let openings: AsyncStream<String>

    /// - Parameters:
    ///   - accessStore: The grants.
    ///   - places: The paths at which clients can reach a socket.
    ///   - logger: Receives the sockets that cannot be opened again.
    package init(_ accessStore: AccessStore, places: GrantSocketPlaces, logger: Logger) {
        self.accessStore = accessStore
        self.places = places
        self.logger = logger
        (openings, queue) = AsyncStream.makeStream()
    }

    /// Opens the sockets of all valid grants, after a start of the broker.
    fileprivate func openAll() async {
        for grant in await accessStore.grants.sockets where sockets[grant.id] == nil {
            do {
                try serve(try places.reopen(at: grant.path), for: grant.id)
            } catch {
                let reason = (error as? Problem)?.detail ?? "\(error)"
                logger.warning(
                    "the socket of a grant cannot be opened; its clients cannot connect",
                    metadata: ["grant": "\(grant.id)", "reason": "\(reason)", "try": "patchbay revoke \(grant.id)"]
                )
            }
        }
    }

    /// Serves a socket until its grant ends.
    ///
    /// - Throws: `AccessError.refused` if the grant has ended.
    private func serve(_ listener: Listener, for grant: String) throws {
        sockets[grant] = OpenSocket(listener: listener)
        do {
            _ = try accessStore.live.register(under: grant) { [self] in await close(grant) }
        } catch {
            sockets[grant] = nil
            throw error
        }
        queue.yield(grant)
    }

    /// Closes a socket and removes its file. The open requests of the grant are sessions of their own, which end too. Only
    /// the request that ends its own grant gets its response.
    private func close(_ grant: String) {
        guard let socket = sockets.removeValue(forKey: grant) else { return }
        socket.listener.close()
        socket.server?.drain()
    }

    /// Runs the server of a grant until the grant ends or the broker stops.
    fileprivate func run(_ grant: String, _ makeServer: @Sendable (consuming Descriptor, String) -> APIServer) async {
        guard let socket = sockets[grant] else { return }
        do {
            let server = makeServer(try socket.listener.duplicate(), grant)
            sockets[grant]?.server = server
            try await server.run()
        } catch {
            logger.error("the socket of a grant is closed", metadata: ["grant": "\(grant)", "reason": "\(error)"])
        }
    }
}

extension GrantSockets {
    /// Creates a grant and a socket whose clients have the grant.
    ///
    /// - Throws: `Problem`.
    func open(_ spec: SocketGrantSpec, for principal: Principal) async throws -> Grant {
        if let other = await accessStore.grants.sockets.first(where: { $0.path == spec.path }) {
            throw Problem(
                .conflict,
                "\(SanitizedText(spec.path)) is the socket of grant \(other.id)",
                hint: "choose another path, or end that grant: patchbay revoke \(other.id)"
            )
        }
        // The socket is opened first, so that a path that cannot be used leaves no grant.
        let listener = try places.listen(at: spec.path, for: principal.user)
        do {
            let grant = try await accessStore.grants.create(spec, by: principal.actor, from: principal.source)
            try serve(listener, for: grant.id)
            return grant
        } catch {
            listener.close()
            throw error
        }
    }
}

/// Serves the sockets of grants, each until its grant ends.
package struct GrantSocketService: Service {
    private let sockets: GrantSockets
    /// Creates the server of a socket, for a grant.
    private let makeServer: @Sendable (consuming Descriptor, String) -> APIServer

    package init(
        _ sockets: GrantSockets,
        makeServer: @escaping @Sendable (consuming Descriptor, String) -> APIServer
    ) {
        self.sockets = sockets
        self.makeServer = makeServer
    }

    package func run() async throws {
        await sockets.openAll()
        await withDiscardingTaskGroup { group in
            for await grant in sockets.openings.cancelOnGracefulShutdown() {
                group.addTask { await sockets.run(grant, makeServer) }
            }
        }
    }
}
