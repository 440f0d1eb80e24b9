import FoundationEssentials
import Model
import TestSupport
import Testing

/// Certificates of the remote listener that change while the broker runs.
@Suite(.needs(.openssl), .timeLimit(.minutes(2)), .scratchFolder) struct RemoteCertificateTests {
    private let scratch = ScratchFolder.current

    private static func status(_ lines: [String]) throws -> RemoteStatus {
        try JSONCoding.decoder().decode(RemoteStatus.self, from: Data(lines.joined(separator: "\n").utf8))
    }

    /// The commands of clients that trust only an authority. Each exits with 0 if the broker answers.
    private static func clients(_ url: String, _ authority: String) -> [[String]] {
        let node =
            "require('https').get(process.argv[1], r => process.exit(r.statusCode === 200 ? 0 : 2)).on('error', () => process.exit(1))"
        let python =
            "import ssl, sys, urllib.request as u; u.urlopen(sys.argv[1], context=ssl.create_default_context(cafile=sys.argv[2]))"
        return [
            ["env", "NODE_EXTRA_CA_CERTS=\(authority)", "node", "-e", node, url],
            ["python3", "-c", python, url, authority],
            ["curl", "-sSf", "--cacert", authority, url],
        ]
    }

    @Test(.needs(.root, .namespaces, .node, .python))
    func `a new address and a new name of the machine are in the certificate at once, on the same key`() async throws {
        let machines = try await RemoteMachines(in: scratch)
        let join = try await machines.join(try await machines.pair("--remote"), "--as", "lab")
        #expect(try await join.exitStatus() == .exited(0), "\(join.log)")
        let before = try Self.status(try await machines.owner("remote", "status", "--json"))
        let pin = Data(try #require(before.pin).bytes).base64EncodedString()
        let (saved, savedAgain) = (scratch.file("ca.pem"), scratch.file("ca-again.pem"))
        try await machines.owner("remote", "certificate", "--out", saved)
        /// Returns the clients on the other machine that an authority leads to the broker.
        func reached(_ host: String, _ authority: String) async throws -> [String] {
            var reached: [String] = []
            for command in Self.clients("https://\(host):\(RemoteMachines.port)/health", authority) {
                let arguments = Array(command[1...])
                let client = try await Program(command[0], arguments, in: scratch, namespace: machines.client)
                if try await client.exitStatus() == .exited(0) { reached.append(command[0]) }
            }
            return reached
        }

        let address = "10.99.0.3"
        try await machines.broker.run("ip", ["addr", "add", "\(address)/24", "dev", "eth0"])
        try await eventually("the certificate has the address") { try await reached(address, saved).count == 3 }

        let label = try #require(try await machines.broker.run("uname", ["-n"]).first?.split(separator: ".").first)
        let (name, hosts) = ("\(label).lab.test", scratch.file("hosts"))
        try Data("127.0.0.1 localhost\n\(RemoteMachines.brokerHost) \(name)\n".utf8).write(to: URL(filePath: hosts))
        for machine in [machines.broker, machines.client] {
            try await machine.run("mount", ["--bind", hosts, "/etc/hosts"])
        }
        try await eventually("the certificate has the name") {
            let now = try Self.status(try await machines.owner("remote", "status", "--json"))
            return now.certificates?.names.contains(name) == true
        }
        // The authority is for the names that the machine had when it was saved.
        #expect(try await reached(name, saved).isEmpty)
        try await machines.owner("remote", "certificate", "--out", savedAgain)
        for host in [name, address, RemoteMachines.brokerHost] {
            #expect(try await reached(host, savedAgain).count == 3, "\(host)")
        }

        let pinned = ["-sSkf", "--pinnedpubkey", "sha256//\(pin)", "https://\(name):\(RemoteMachines.port)/health"]
        try await machines.client.run("curl", pinned)
        #expect(try await machines.ask("list", "--broker", "lab").isEmpty == false)
        #expect(try Self.status(try await machines.owner("remote", "status", "--json")).pin == before.pin)
    }

    @Test func `a certificate of the owner's own is exchanged while the broker runs, and its pinned key stays`()
        async throws
    {
        let ports = try FreePorts.take(2)
        let (certificate, key) = (scratch.file("lab.pem"), scratch.file("lab.key"))
        let (first, second) = (scratch.file("first.pem"), scratch.file("second.pem"))
        /// Issues a certificate as an ACME client would: a new pair in place of the old one.
        func issue(saveAs copy: String) async throws {
            let parts = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-keyout", "\(key).new", "-out", copy]
            let names = ["-subj", "/CN=lab", "-addext", "subjectAltName=DNS:lab.example.com"]
            try await Program.run("openssl", ["req", "-x509", "-nodes", "-days", "1"] + names + parts, in: scratch)
            try await Program.run("mv", ["\(key).new", key], in: scratch)
            try await Program.run("cp", [copy, "\(certificate).new"], in: scratch)
            try await Program.run("mv", ["\(certificate).new", certificate], in: scratch)
        }
        try await issue(saveAs: first)
        let configuration = """
            [api]
            port = \(ports[0])
            remote = "127.0.0.1:\(ports[1])"
            remote_certificate = "\(certificate)"
            remote_key = "\(key)"
            """
        let broker = try await RunningBroker(in: scratch, configuration: configuration)
        func isTrusted(_ authority: String) async throws -> Bool {
            let place = "lab.example.com:\(ports[1])"
            let target = ["--cacert", authority, "--resolve", "\(place):127.0.0.1", "https://\(place)/health"]
            let client = try await Program("curl", ["-sSf"] + target, in: scratch)
            return try await client.exitStatus() == .exited(0)
        }
        func status() async throws -> RemoteStatus {
            try Self.status(try await broker.ask("remote", "status", "--json"))
        }
        try await eventually("the listener is open") { try await status().state == .listening }
        let pin = try #require(try await status().pin)
        #expect(try await isTrusted(first))

        try await issue(saveAs: second)

        try await eventually("the new certificate is in use") { try await isTrusted(second) }
        #expect(try await !isTrusted(first))
        try Data("broken".utf8).write(to: URL(filePath: certificate))
        try await eventually("the broken file is reported") { try await status().certificates?.problem != nil }
        #expect(try await isTrusted(second))
        let other = ["-sSkf", "--pinnedpubkey", "sha256//\(Data(pin.bytes).base64EncodedString())"]
        try await Program.run("curl", other + ["https://127.0.0.1:\(ports[1])/health"], in: scratch)
    }
}
