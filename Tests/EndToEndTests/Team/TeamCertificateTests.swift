import Model
import TestSupport
import Testing

/// The certificates of a team at real etcd nodes.
@Suite(.needs(.etcd, .openssl), .scratchFolder) struct TeamCertificateTests {
    private let scratch = ScratchFolder.current

    /// Starts lab1 with a new team, whose etcd does not run yet.
    ///
    /// - Returns: The broker of lab1, and the messages of the command.
    private func createTeam(
        etcd urls: String...,
        in scratch: ScratchFolder
    ) async throws -> (lab1: RunningBroker, log: String) {
        let lab1 = try await RunningBroker(
            in: scratch,
            named: "lab1",
            configuration: """
                [team]
                listen = "127.0.0.1:\(try FreePorts.take(1)[0])"
                addresses = ["127.0.0.1"]
                """
        )
        let servers = urls.flatMap { ["--etcd", $0] }
        let creation = try await lab1.start(["team", "init", "lab", "--host", "lab1", "--wait", "0s"] + servers)
        #expect(try await creation.exitStatus() == .exited(75), "\(creation.log)")
        return (lab1, creation.log)
    }

    @Test func `without any etcd server, the command names each server and its reason`() async throws {
        let urls = try FreePorts.take(3).map { "https://127.0.0.1:\($0)" }

        let (lab1, log) = try await createTeam(etcd: urls[0], urls[1], urls[2], in: scratch)

        for url in urls { #expect(log.contains("\(url): Connection refused"), "\(log)") }
        #expect(log.matches(of: /Connection refused/).count == 3, "\(log)")
        // A later command says the same.
        let status = try await lab1.ask("team").joined(separator: "\n")
        for url in urls { #expect(status.contains(url), "\(status)") }
    }

    @Test func `etcd nodes accept each other, and no host, as a node`() async throws {
        let ports = try FreePorts.take(6)
        let (lab1, _) = try await createTeam(etcd: "https://127.0.0.1:\(ports[0])", in: scratch)
        let folder = scratch.file("etcd-certificates")
        var nodes: [EtcdServer] = []
        for index in 0..<3 {
            let name = "etcd\(index + 1)"
            _ = try await lab1.ask("team", "certificate", name, "127.0.0.1", "--out", folder)
            let tls = try EtcdServer.certificateOptions(in: "\(folder)/\(name)")
            nodes.append(EtcdServer(name, ports: (ports[index], ports[3 + index]), tls: tls, in: scratch))
        }
        for node in nodes { try await node.start(members: nodes) }
        // A node without the others has no leader, and serves no clients.
        for node in nodes { try await node.waitUntilReady() }
        _ = try await lab1.ask("team", "init", "lab")

        let host = "\(lab1.state)/team/host.pem"
        let (node, key) = ("\(folder)/etcd1/etcd1-peer.pem", "\(folder)/etcd1/etcd1-key.pem")
        for (certificate, key, isAccepted) in [(node, key, true), (host, host, false)] {
            let request = try await Program(
                "curl",
                [
                    "-sS", "--http1.1", "--max-time", "5", "--cacert", "\(folder)/etcd1/ca.pem", "--cert", certificate,
                    "--key", key,
                    "https://127.0.0.1:\(ports[3])/members",
                ],
                in: scratch
            )
            let status = try await request.exitStatus()
            #expect((status == .exited(0)) == isAccepted, "\(certificate): \(status)\n\(request.log)")
        }
    }

    @Test func `a host cannot be the etcd of its team`() async throws {
        let ports = try FreePorts.take(2)
        let (lab1, _) = try await createTeam(etcd: "https://127.0.0.1:\(ports[0])", in: scratch)
        let (authority, host) = ("\(lab1.state)/team/ca.pem", "\(lab1.state)/team/host.pem")
        let node = EtcdServer(
            "etcd1",
            ports: (ports[0], ports[1]),
            tls: [
                "--client-cert-auth", "--trusted-ca-file", authority, "--cert-file", host, "--key-file", host,
                "--peer-auto-tls",
            ],
            in: scratch
        )
        try await node.start(members: [node])
        try await node.waitUntilReady()

        let creation = try await lab1.start("team", "init", "lab", "--wait", "0s")
        #expect(try await creation.exitStatus() == .exited(75), "\(creation.log)")
    }

    @Test func `a cluster grows from one node to three by the steps in docs/team.md`() async throws {
        let ports = try FreePorts.take(2)
        let addresses = ["etcd1": "127.0.0.1", "etcd2": "127.0.0.2", "etcd3": "127.0.0.3"]
        let urls = ["etcd1", "etcd2", "etcd3"].map { "https://\(addresses[$0]!):\(ports[0])" }
        let folder = scratch.file("etcd-certs")
        /// Starts a node with its `etcd.env`, at other ports and on one of the addresses of loopback.
        func start(_ name: String) async throws -> Program {
            let variables = try EtcdServer.variables(in: "\(folder)/\(name)").mapValues { value in
                value.replacing("0.0.0.0", with: addresses[name]!).replacing(":2379", with: ":\(ports[0])")
                    .replacing(":2380", with: ":\(ports[1])")
                    .replacing("/var/lib/etcd/patchbay", with: scratch.file("\(name)-data"))
            }
            let node = try await Program(
                "etcd",
                ["--logger", "zap", "--log-outputs", "stderr"],
                in: scratch,
                environment: variables
            )
            _ = try await node.waitForLine("serving client traffic securely")
            return node
        }
        let (lab1, _) = try await createTeam(etcd: urls[0], in: scratch)
        _ = try await lab1.ask("team", "certificate", "etcd1", "127.0.0.1", "--out", folder)
        let first = try await start("etcd1")
        _ = try await lab1.ask("team", "init", "lab")

        var nodes = ["--node", "etcd1=127.0.0.1"]
        var others: [Program] = []
        for name in ["etcd2", "etcd3"] {
            let address = addresses[name]!
            let words = ["team", "certificate", name, address, "--out", folder, "--existing"] + nodes
            #expect(try await lab1.start(words).exitStatus() == .exited(0))
            let root = "\(lab1.state)/team/root.pem"
            // etcd refuses a further node for 5 s, until the last one takes part.
            try await eventually(within: .seconds(30), "etcd adds \(name)") {
                let add = try await Program(
                    "etcdctl",
                    [
                        "--endpoints", urls[0], "--cacert", "\(lab1.state)/team/ca.pem", "--cert", root, "--key", root,
                        "member", "add", name, "--peer-urls=https://\(address):\(ports[1])",
                    ],
                    in: scratch,
                    environment: ["ETCDCTL_API": "3"]
                )
                return try await add.exitStatus(within: .seconds(20)) == .exited(0)
            }
            others.append(try await start(name))
            nodes += ["--node", "\(name)=\(address)"]
        }
        let change = try await lab1.start(["team", "init", "lab"] + urls.flatMap { ["--etcd", $0] })
        #expect(try await change.exitStatus(within: .seconds(30)) == .exited(0), "\(change.log)")

        first.kill()
        _ = try await first.exitStatus()
        let status = try await lab1.teamStatus()
        #expect(status.etcd.map(\.url) == urls)
        try await eventually(within: .seconds(20), "the other two nodes work without the first") {
            try await lab1.teamStatus().etcd.map { $0.problem == nil } == [false, true, true]
        }
    }
}
