import TestSupport
import Testing

/// The certificates of a team at real etcd nodes.
@Suite(.needs(.etcd, .openssl)) struct TeamCertificateTests {
    /// Starts lab1 with a new team, whose etcd does not run yet.
    private func createTeam(etcd url: String, in scratch: ScratchFolder) async throws -> RunningBroker {
        let lab1 = try await RunningBroker(
            in: scratch,
            named: "lab1",
            configuration: """
                [team]
                listen = "127.0.0.1:\(try FreePorts.take(1)[0])"
                addresses = ["127.0.0.1"]
                """
        )
        let creation = try await lab1.start("team", "init", "lab", "--etcd", url, "--host", "lab1")
        #expect(try await creation.exitStatus() == .exited(75), "\(creation.log)")
        return lab1
    }

    /// Starts an etcd node. Returns before it is ready.
    private func startNode(
        _ name: String,
        url: String,
        peers: [String: String],
        _ options: [String],
        in scratch: ScratchFolder
    ) async throws -> Program {
        let peer = try #require(peers[name])
        return try await Program(
            "etcd",
            [
                "--name", name, "--data-dir", scratch.file("data-\(name)"),
                "--listen-client-urls", url, "--advertise-client-urls", url,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", peers.map { "\($0)=\($1)" }.joined(separator: ","),
                "--logger", "zap", "--log-outputs", "stderr",
            ] + options,
            in: scratch
        )
    }

    @Test func `etcd nodes accept each other, and no host, as a node`() async throws {
        try await withScratchFolder { scratch in
            let ports = try FreePorts.take(6).map { "https://127.0.0.1:\($0)" }
            let names = ["etcd1", "etcd2", "etcd3"]
            let peers = Dictionary(uniqueKeysWithValues: zip(names, ports[3...]))
            let lab1 = try await createTeam(etcd: ports[0], in: scratch)
            let folder = scratch.file("etcd-certificates")
            var nodes: [Program] = []
            for (name, url) in zip(names, ports) {
                let options = try await lab1.ask("team", "certificate", name, "127.0.0.1", "--out", folder)
                nodes.append(try await startNode(name, url: url, peers: peers, options, in: scratch))
            }
            // A node without the others has no leader, and serves no clients.
            for node in nodes { try await node.waitForLine("serving client traffic securely", within: .seconds(20)) }
            _ = try await lab1.ask("team", "init", "lab")

            let host = "\(lab1.state)/team/host.pem"
            let (node, key) = ("\(folder)/etcd1-peer.pem", "\(folder)/etcd1-key.pem")
            for (certificate, key, isAccepted) in [(node, key, true), (host, host, false)] {
                let request = try await Program(
                    "curl",
                    [
                        "-sS", "--http1.1", "--max-time", "5", "--cacert", "\(folder)/ca.pem", "--cert", certificate,
                        "--key", key,
                        "\(ports[3])/members",
                    ],
                    in: scratch
                )
                let status = try await request.exitStatus()
                #expect((status == .exited(0)) == isAccepted, "\(certificate): \(status)\n\(request.log)")
            }
        }
    }

    @Test func `a host cannot be the etcd of its team`() async throws {
        try await withScratchFolder { scratch in
            let ports = try FreePorts.take(2)
            let url = "https://127.0.0.1:\(ports[0])"
            let lab1 = try await createTeam(etcd: url, in: scratch)
            let (authority, host) = ("\(lab1.state)/team/ca.pem", "\(lab1.state)/team/host.pem")
            let options = [
                "--client-cert-auth", "--trusted-ca-file", authority, "--cert-file", host, "--key-file", host,
            ]
            let peers = ["etcd1": "http://127.0.0.1:\(ports[1])"]
            let node = try await startNode("etcd1", url: url, peers: peers, options, in: scratch)
            try await node.waitForLine("serving client traffic securely", within: .seconds(20))

            let creation = try await lab1.start("team", "init", "lab")
            #expect(try await creation.exitStatus() == .exited(75), "\(creation.log)")
        }
    }
}
