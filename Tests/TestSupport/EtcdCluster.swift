import FoundationEssentials

/// A cluster of etcd with real servers. Authentication is not enabled.
package final class EtcdCluster: Sendable {
    package let servers: [EtcdServer]
    package let certificates: EtcdCertificates
    /// The credentials of the etcd user `root`.
    package let root: EtcdCertificates.Credentials
    private let scratch: ScratchFolder

    /// Starts a number of servers on loopback; returns when they are ready.
    package init(servers count: Int = 1, in scratch: ScratchFolder) async throws {
        self.scratch = scratch
        let certificates = try await EtcdCertificates(in: scratch)
        self.certificates = certificates
        root = try await certificates.issue("root")
        let ports = try FreePorts.take(2 * count)
        var servers: [EtcdServer] = []
        for number in 0..<count {
            let name = "etcd\(number + 1)"
            servers.append(
                EtcdServer(
                    name,
                    ports: (ports[2 * number], ports[2 * number + 1]),
                    tls: try await certificates.options(of: name),
                    in: scratch
                )
            )
        }
        self.servers = servers
        for server in servers { try await server.start(members: servers) }
        for server in servers { try await server.waitUntilReady() }
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
            environment: ["ETCDCTL_API": "3"]
        )
    }

    /// Returns the server that is the leader.
    package func leader() async throws -> EtcdServer {
        try servers.leader(in: try await etcdctl("endpoint", "status", "--write-out", "json").joined())
    }
}

extension [EtcdServer] {
    /// Returns the server that is the leader in the answer of `etcdctl endpoint status --write-out json`.
    package func leader(in output: String) throws -> EtcdServer {
        let answers = try JSONDecoder().decode([EndpointStatus].self, from: Data(output.utf8))
        guard let leader = answers.first(where: { $0.status.leader == $0.status.header.member }),
            let server = first(where: { $0.endpoint == leader.endpoint })
        else { throw TestSupportError("the cluster has no leader: \(output)") }
        return server
    }
}

/// A part of etcdctl's answer.
private struct EndpointStatus: Decodable {
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
