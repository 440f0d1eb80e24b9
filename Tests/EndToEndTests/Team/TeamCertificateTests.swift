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
            let tls = try await lab1.ask("team", "certificate", name, "127.0.0.1", "--out", folder)
            nodes.append(EtcdServer(name, ports: (ports[index], ports[3 + index]), tls: tls, in: scratch))
        }
        for node in nodes { try await node.start(members: nodes) }
        // A node without the others has no leader, and serves no clients.
        for node in nodes { try await node.waitUntilReady() }
        _ = try await lab1.ask("team", "init", "lab")

        let host = "\(lab1.state)/team/host.pem"
        let (node, key) = ("\(folder)/etcd1-peer.pem", "\(folder)/etcd1-key.pem")
        for (certificate, key, isAccepted) in [(node, key, true), (host, host, false)] {
            let request = try await Program(
                "curl",
                [
                    "-sS", "--http1.1", "--max-time", "5", "--cacert", "\(folder)/ca.pem", "--cert", certificate,
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
}
