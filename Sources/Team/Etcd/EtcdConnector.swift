package import Logging
package import Model

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

    package func health(_ connection: TeamRegistryConnection) async -> [TeamRegistryServer] {
        await withTaskGroup { group in
            for server in connection.servers {
                group.addTask { TeamRegistryServer(url: server, problem: await problem(of: server, connection)) }
            }
            let found = await group.reduce(into: [:]) { $0[$1.url] = $1 }
            return connection.servers.compactMap { found[$0] }
        }
    }

    /// Returns the reason why a server does not answer or cannot write; nil if it works.
    private func problem(of server: String, _ connection: TeamRegistryConnection) async -> String? {
        do {
            let status = try await EtcdAdministration(client(connection, servers: [server])).status()
            guard status.hasLeader else { return "it has no leader: most servers of the cluster do not answer" }
            return status.errors.isEmpty ? nil : status.errors.joined(separator: "; ")
        } catch {
            return "\(error)"
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
