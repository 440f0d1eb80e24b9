import FoundationEssentials
import TestSupport
import Testing

/// OAuth with clients from PyPI, each of which is installed once.
@Suite(.needs(.python), .timeLimit(.minutes(5)), .scratchFolder) struct OAuthTests {
    private let scratch = ScratchFolder.current
    private static let folder = String(#filePath.dropLast("OAuthTests.swift".count))

    @Test(arguments: [("mcp-1", "oauth", 8), ("mcp-2", "oauth", 8), ("fastmcp-4", "oauth_fastmcp", 2)])
    func `a client that knows only the URL asks an owner, uses and renews its token, and asks again`(
        client: String,
        script: String,
        steps: Int
    ) async throws {
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\nport = \(port)\noauth = true\n")
        let python = try await Program.run(
            "sh",
            ["\(AgentPeer.folder)/environment", client],
            in: scratch,
            within: .seconds(300)
        )
        let program = try await Program(
            try #require(python.last),
            [
                "\(Self.folder)\(script).py", try Executable.built("patchbay"), broker.socket,
                "http://127.0.0.1:\(port)/mcp",
            ],
            in: scratch,
            environment: ["PYTHONDONTWRITEBYTECODE": "1"]
        )

        let status = try await program.exitStatus(within: .seconds(120))

        for await _ in program.transcript.elements() {}
        #expect(status == .exited(0), "\(program.log)\n\(broker.daemon.log)")
        #expect(program.output.count { $0.hasPrefix("ok: ") } == steps, "\(program.log)")
    }

    @Test func `mcp-remote, the inspector and the conformance suite get what their sources expect`() async throws {
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\nport = \(port)\noauth = true\n")
        let program = try await Program(
            "python3",
            [
                "\(Self.folder)oauth_traces.py", try Executable.built("patchbay"), broker.socket,
                "http://127.0.0.1:\(port)/mcp",
            ],
            in: scratch
        )

        let status = try await program.exitStatus(within: .seconds(60))

        for await _ in program.transcript.elements() {}
        #expect(status == .exited(0), "\(program.log)\n\(broker.daemon.log)")
        #expect(program.output.count { $0.hasPrefix("ok: ") } == 5, "\(program.log)")
    }

    /// The server has a public address on the loopback interface of a namespace, which no packet leaves.
    @Test(.needs(.namespaces, .openssl))
    func `a client with a metadata document asks, and a document that points inside is not fetched`() async throws {
        let namespace = try await NetworkNamespace(in: scratch)
        let (certificate, key, hosts) = (
            "\(scratch.path)/site.pem", "\(scratch.path)/site.key", "\(scratch.path)/hosts"
        )
        let names =
            "9.9.9.10 app.example wrong.example mixed.example\n"
            + "127.0.0.1 inside.example mixed.example localhost\n"
        try Data(names.utf8).write(to: URL(filePath: hosts))
        try await Program.run(
            "openssl",
            [
                "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=site", "-out", certificate, "-keyout", key,
                "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                "-addext", "subjectAltName=DNS:app.example,DNS:inside.example,DNS:mixed.example",
            ],
            in: scratch
        )
        try await namespace.run("ip", ["address", "add", "9.9.9.10/32", "dev", "lo"])
        try await namespace.run("mount", ["--bind", hosts, "/etc/hosts"])
        try await namespace.run("mount", ["--bind", certificate, "/etc/ssl/certs/ca-certificates.crt"])
        let broker = try await RunningBroker(
            in: scratch,
            namespace: namespace,
            configuration: "[api]\noauth = true\noauth_client_metadata = true\n"
        )
        let program = try await Program(
            "python3",
            [
                "\(Self.folder)oauth_document.py", try Executable.built("patchbay"), broker.socket,
                "http://127.0.0.1:7282/mcp", certificate, key,
            ],
            in: scratch,
            namespace: namespace
        )

        let status = try await program.exitStatus(within: .seconds(60))

        for await _ in program.transcript.elements() {}
        #expect(status == .exited(0), "\(program.log)\n\(broker.daemon.log)")
        #expect(program.output.count { $0.hasPrefix("ok: ") } == 8, "\(program.log)")
    }

    @Test(.needs(.browser))
    func `the page of the consent waits for an owner, shows hostile names as text, and is in no frame`() async throws {
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\nport = \(port)\noauth = true\n")
        let program = try await Program(
            try await PythonPeers.playwright(in: scratch),
            ["\(Self.folder)consent.py", try Executable.built("patchbay"), broker.socket, "\(port)"],
            in: scratch,
            environment: ["PYTHONDONTWRITEBYTECODE": "1"]
        )

        let status = try await program.exitStatus(within: .seconds(120))

        for await _ in program.transcript.elements() {}
        #expect(status == .exited(0), "\(program.log)\n\(broker.daemon.log)")
        #expect(program.output.count { $0.hasPrefix("ok: ") } == 7, "\(program.log)")
    }

    @Test func `without api.oauth the same routes answer 404, and a 401 says what to do`() async throws {
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\nport = \(port)\n")
        func ask(_ method: String, _ path: String) async throws -> [String] {
            let url = "http://127.0.0.1:\(port)\(path)"
            let words = ["-sS", "-i", "-X", method, "-H", "Content-Type: application/json"]
            return try await Program.run("curl", words + ["-d", "{}", url], in: scratch)
        }
        let wellKnown = "/.well-known/oauth-"
        for (method, path) in [
            ("GET", "\(wellKnown)protected-resource"), ("GET", "\(wellKnown)protected-resource/mcp"),
            ("GET", "\(wellKnown)authorization-server"), ("POST", "/oauth/register"), ("GET", "/oauth/authorize"),
            ("POST", "/oauth/requests"), ("POST", "/oauth/requests/answer"), ("POST", "/oauth/token"),
            ("POST", "/oauth/revoke"), ("POST", "/register"), ("POST", "/token"),
        ] {
            #expect(try await ask(method, path)[0].hasPrefix("HTTP/1.1 404"), "\(path)")
        }
        let refused = try await ask("POST", "/mcp")
        #expect(refused[0].hasPrefix("HTTP/1.1 401"))
        #expect(refused.contains { $0.trimmingPrefix("WWW-Authenticate: ") == "Bearer" || $0.contains("Bearer\r") })
        #expect(!refused.joined().contains("resource_metadata"))
        #expect(refused.joined().contains("\"error_description\""))
        #expect(refused.joined().contains("patchbay pair"))
        _ = broker
    }
}
