import FoundationEssentials
import TestSupport
import Testing

/// A team on an etcd cluster that has its own authority and administrator.
@Suite(.needs(.etcd), .timeLimit(.minutes(5)), .scratchFolder) struct TeamExistingEtcdTests {
    private let scratch = ScratchFolder.current

    private func broker(_ name: String, in scratch: ScratchFolder) async throws -> RunningBroker {
        let ports = try FreePorts.take(2)
        return try await RunningBroker(
            in: scratch,
            named: name,
            configuration: RunningTeam.configuration(api: ports[0], team: "127.0.0.1:\(ports[1])")
        )
    }

    /// Adds the authority of the team to those that the servers of a cluster trust, and restarts the servers.
    private func trust(_ certificate: String, _ cluster: EtcdCluster) async throws {
        let authority = URL(filePath: cluster.certificates.authorityPath)
        try (Data(contentsOf: authority) + Data(contentsOf: URL(filePath: certificate))).write(to: authority)
        for server in cluster.servers { try await server.kill() }
        for server in cluster.servers { try await cluster.restart(server) }
        for server in cluster.servers { try await server.waitUntilReady() }
    }

    @Test func `a team uses an etcd cluster that exists already, by the steps in docs/team.md`() async throws {
        let cluster = try await EtcdCluster(in: scratch)
        try await cluster.etcdctl("put", "other", "value")
        let lab1 = try await broker("lab1", in: scratch)
        let lab2 = try await broker("lab2", in: scratch)
        let create = try await lab1.start([
            "team", "init", "lab", "--host", "lab1", "--wait", "0s", "--etcd", cluster.endpoints[0],
            "--etcd-ca", cluster.certificates.authorityPath,
            "--etcd-cert", cluster.root.certificatePath, "--etcd-key", cluster.root.keyPath,
        ])
        #expect(try await create.exitStatus() == .exited(75), "\(create.log)")
        let folder = scratch.file("team-certs")
        _ = try await lab1.ask("team", "certificate", "any", "127.0.0.1", "--out", folder)
        try await trust("\(folder)/any/ca.pem", cluster)

        _ = try await lab1.ask("team", "init", "lab")

        try await lab1.restart()
        try await RunningTeam.join(lab2, as: "lab2", to: lab1)
        _ = try await lab2.ask("add", "shop", "127.0.0.1:9", "--kind", "mcp")
        try await eventually("lab1 lists the endpoint of lab2") {
            try await lab1.ask("list").contains { $0.contains("shop.lab2") }
        }
        #expect(try await cluster.etcdctl("get", "other") == ["other", "value"])
        // A host of the team reads nothing else in the cluster.
        let host = "\(lab2.state)/team/host.pem"
        let reader = try await Program(
            "etcdctl",
            [
                "--endpoints", cluster.endpoints[0], "--cacert", cluster.certificates.authorityPath,
                "--cert", host, "--key", host, "get", "other",
            ],
            in: scratch,
            environment: ["ETCDCTL_API": "3"]
        )
        #expect(try await reader.exitStatus() == .exited(1), "\(reader.log)")
        #expect(reader.log.contains("permission denied"), "\(reader.log)")
    }
}
