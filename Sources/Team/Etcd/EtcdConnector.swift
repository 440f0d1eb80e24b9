package import Logging
import Model

/// Connects to a team's registry on etcd.
package struct EtcdConnector: TeamRegistryConnector {
    let logger: Logger

    package init(logger: Logger) { self.logger = logger }

    package func administration(
        _ connection: TeamRegistryConnection
    ) throws(TeamStoreError) -> any TeamRegistryAdministration {
        EtcdRegistryAdministration(client: try client(connection, servers: connection.servers))
    }

    package func store(_ connection: TeamRegistryConnection) throws(TeamStoreError) -> any TeamStore {
        EtcdStore(try client(connection, servers: connection.servers))
    }

    package func health(_ connection: TeamRegistryConnection) async -> [TeamServerHealth] {
        await withTaskGroup { group in
            for server in connection.servers {
                group.addTask { await state(of: server, connection) }
            }
            let found = await group.reduce(into: [:]) { $0[$1.server.url] = $1 }
            return connection.servers.compactMap { found[$0] }
        }
    }

    /// Returns whether a server answers and can write, and its clock.
    private func state(of server: String, _ connection: TeamRegistryConnection) async -> TeamServerHealth {
        do {
            let client = try client(connection, servers: [server])
            let problem = try await EtcdAdministration(client).status().problem
            return TeamServerHealth(url: server, problem: problem, clockSkew: await client.clockSkew())
        } catch {
            return TeamServerHealth(url: server, problem: "\(error)")
        }
    }

    private func client(
        _ connection: TeamRegistryConnection,
        servers: [String]
    ) throws(TeamStoreError) -> EtcdClient {
        var endpoints: [EtcdEndpoint] = []
        for server in servers {
            guard let endpoint = EtcdEndpoint(server) else {
                throw .failed(reason: "\"\(SanitizedText(server))\" is not the URL of an etcd server")
            }
            endpoints.append(endpoint)
        }
        let configuration = try EtcdConfiguration(
            endpoints: endpoints,
            authority: connection.authority,
            certificate: connection.certificate,
            key: connection.key
        )
        return EtcdClient(configuration, logger: logger)
    }
}

/// The administration of a team's registry on etcd.
private struct EtcdRegistryAdministration: TeamRegistryAdministration {
    let client: EtcdClient

    var store: any TeamStore { EtcdStore(client) }

    private var administration: EtcdAdministration { EtcdAdministration(client) }

    func prepare() async throws(TeamStoreError) { try await administration.enableAuthentication() }

    func addHost(_ host: HostName) async throws(TeamStoreError) { try await administration.addHost(host) }

    func removeHost(_ host: HostName) async throws(TeamStoreError) -> Bool {
        try await administration.removeHost(host)
    }
}
