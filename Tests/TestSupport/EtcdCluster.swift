import FoundationEssentials

/// A cluster of etcd with real servers. Authentication is not enabled.
package final class EtcdCluster: Sendable {
    package let servers: [EtcdServer]
    package let certificates: EtcdCertificates
    private let root: EtcdCertificates.Credentials
    private let namespace: NetworkNamespace?
    private let scratch: ScratchFolder

    /// Starts the servers; returns when they are ready. With places in network namespaces, `etcdctl` runs in the first.
    package init(_ places: [EtcdServer.Place], in scratch: ScratchFolder) async throws {
        self.scratch = scratch
        let certificates = try await EtcdCertificates(in: scratch)
        self.certificates = certificates
        root = try await certificates.issue("root")
        namespace = places.first?.namespace
        let ports = try FreePorts.take(2 * places.count)
        var servers: [EtcdServer] = []
        for (index, place) in places.enumerated() {
            servers.append(
                try await EtcdServer(
                    "etcd\(index + 1)",
                    at: place,
                    ports: (ports[2 * index], ports[2 * index + 1]),
                    certificates: certificates,
                    in: scratch
                )
            )
        }
        self.servers = servers
        for server in servers { try await server.start(members: servers) }
        for server in servers { try await server.waitUntilReady() }
    }

    /// Starts a number of servers on loopback.
    package convenience init(servers count: Int = 1, in scratch: ScratchFolder) async throws {
        try await self.init((0..<count).map { _ in EtcdServer.Place() }, in: scratch)
    }

    /// The URLs for clients.
    package var endpoints: [String] { servers.map(\.endpoint) }

    /// Starts a killed server again with its data. Returns before it is ready.
    package func restart(_ server: EtcdServer) async throws { try await server.start(members: servers) }

    /// Runs etcdctl as the user `root`.
    ///
    /// - Returns: The lines of its output.
    @discardableResult
    package func etcdctl(_ arguments: String..., at servers: [EtcdServer]? = nil) async throws -> [String] {
        let endpoints = (servers ?? self.servers).map(\.endpoint).joined(separator: ",")
        return try await Program.run(
            "etcdctl",
            [
                "--endpoints", endpoints, "--cacert", certificates.authorityPath,
                "--cert", root.certificatePath, "--key", root.keyPath,
            ] + arguments,
            in: scratch,
            environment: ["ETCDCTL_API": "3"],
            namespace: namespace
        )
    }

    /// Returns the server that is the leader.
    package func leader() async throws -> EtcdServer {
        let output = try await etcdctl("endpoint", "status", "--write-out", "json").joined()
        let answers = try JSONDecoder().decode([Answer].self, from: Data(output.utf8))
        guard let leader = answers.first(where: { $0.status.leader == $0.status.header.member }),
            let server = servers.first(where: { $0.endpoint == leader.endpoint })
        else { throw TestSupportError("the cluster has no leader: \(output)") }
        return server
    }

    /// A part of etcdctl's answer.
    private struct Answer: Decodable {
        struct Status: Decodable {
            struct Header: Decodable {
                let member: UInt64

                enum CodingKeys: String, CodingKey { case member = "member_id" }
            }

            let header: Header
            let leader: UInt64
        }

        let endpoint: String
        let status: Status

        enum CodingKeys: String, CodingKey {
            case endpoint = "Endpoint"
            case status = "Status"
        }
    }
}
