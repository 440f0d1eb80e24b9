import FoundationEssentials
import Glibc
import Model
import SystemIO
import TestSupport
import Testing

/// The remote listener, with OpenSSL and curl as independent clients.
@Suite(.needs(.openssl), .scratchFolder) struct RemoteListenerTests {
    private let scratch = ScratchFolder.current

    /// A broker with its remote listener on.
    private struct Bed {
        let broker: RunningBroker
        let scratch: ScratchFolder
        let port: UInt16
        let pin: KeyPin

        /// Starts a request. curl compares the pin but not the name and the issuer.
        func curl(_ path: String, pin: KeyPin, _ more: [String] = []) async throws -> Program {
            let pin = Data(pin.bytes).base64EncodedString()
            return try await Program(
                "curl",
                ["-sSk", "--max-time", "8", "--pinnedpubkey", "sha256//\(pin)", "-w", "\nstatus %{http_code}\n"]
                    + more + ["https://127.0.0.1:\(port)\(path)"],
                in: scratch
            )
        }

        /// Returns the last line of curl's output, which has the status of the response.
        func status(_ path: String, _ more: String...) async throws -> String? {
            let request = try await curl(path, pin: pin, more)
            #expect(try await request.exitStatus() == .exited(0), "\(request.log)")
            return request.output.last
        }
    }

    private func startBed() async throws -> Bed {
        let ports = try FreePorts.take(2)
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\nport = \(ports[0])\n")
        let on = try await broker.ask("remote", "on", "127.0.0.1:\(ports[1])", "--json")
        let status = try Self.status(on)
        #expect(status.state == .listening)
        return Bed(broker: broker, scratch: scratch, port: ports[1], pin: try #require(status.pin))
    }

    private static func status(_ lines: [String]) throws -> RemoteStatus {
        try JSONCoding.decoder().decode(RemoteStatus.self, from: Data(lines.joined(separator: "\n").utf8))
    }

    @Test func `curl reaches the broker with its pin, and stops at another pin`() async throws {
        let bed = try await startBed()
        let right = try await bed.curl("/health", pin: bed.pin)
        #expect(try await right.exitStatus() == .exited(0), "\(right.log)")
        #expect(right.output.last == "status 200" && right.output.first?.contains("\"ok\"") == true)

        var bytes = bed.pin.bytes
        bytes[31] ^= 1
        let wrong = try await bed.curl("/health", pin: try #require(KeyPin(digest: bytes)))
        // CURLE_SSL_PINNEDPUBKEYNOTMATCH
        #expect(try await wrong.exitStatus() == .exited(90), "\(wrong.log)")
    }

    @Test(.needs(.node, .python))
    func `Node, Python and curl reach the broker by its names with its authority, and Node not without`() async throws {
        let bed = try await startBed()
        let authority = scratch.file("ca.pem")
        _ = try await bed.broker.ask("remote", "certificate", "--out", authority)
        let node =
            "require('https').get(process.argv[1], r => process.exit(r.statusCode === 200 ? 0 : 2)).on('error', () => process.exit(1))"
        let python =
            "import ssl, sys, urllib.request as u; u.urlopen(sys.argv[1], context=ssl.create_default_context(cafile=sys.argv[2]))"
        for host in ["localhost", "127.0.0.1"] {
            let url = "https://\(host):\(bed.port)/health"
            for command in [
                ["env", "NODE_EXTRA_CA_CERTS=\(authority)", "node", "-e", node, url],
                ["python3", "-c", python, url, authority], ["curl", "-sSf", "--cacert", authority, url],
            ] {
                let client = try await Program(command[0], Array(command[1...]), in: scratch)
                #expect(try await client.exitStatus() == .exited(0), "\(host): \(client.log)")
            }
            let stranger = try await Program(
                "env",
                ["-u", "NODE_EXTRA_CA_CERTS", "node", "-e", node, url],
                in: scratch
            )
            #expect(try await stranger.exitStatus() == .exited(1))
        }
    }

    @Test func `the server card of a remote client has an https address, and its entity tag spares the second answer`()
        async throws
    {
        let bed = try await startBed()
        struct Token: Decodable { let token: String }
        let printed = try await bed.broker.ask("pair", "--detach", "--bearer")
        let pairing = try PairingString(try #require(printed.first { $0.hasPrefix("PATCHBAY:1:") }))
        let client = String(repeating: "k", count: 32)
        let body = #"{"token": "\#(pairing.invite)", "client": "\#(client)", "name": "tests"}"#
        let redeemed = try await bed.curl(
            "/v1/invites/redeem",
            pin: bed.pin,
            ["-H", "Content-Type: application/json", "-d", body]
        )
        _ = try await redeemed.exitStatus()
        let grant = try JSONDecoder().decode(Token.self, from: Data((redeemed.output.first ?? "").utf8)).token
        let authorization = "Authorization: Bearer \(grant)"

        let card = try await bed.curl("/mcp/server-card", pin: bed.pin, ["-i", "-H", authorization])
        _ = try await card.exitStatus()
        let field = try #require(card.output.first { $0.lowercased().hasPrefix("etag: ") })
        // Lines of a head end with CRLF.
        let tag = String(field.dropFirst("etag: ".count).filter { !$0.isNewline })
        let again = try await bed.status("/mcp/server-card", "-H", authorization, "-H", "If-None-Match: \(tag)")

        #expect(card.log.contains(#""url":"https://127.0.0.1:\#(bed.port)/mcp""#), "\(card.log)")
        #expect(card.log.lowercased().contains("cache-control: private, no-cache"))
        #expect(again == "status 304")
    }

    @Test(arguments: [
        ("P-256", "ec -pkeyopt ec_paramgen_curve:P-256", true), ("P-384", "ec -pkeyopt ec_paramgen_curve:P-384", false),
        ("RSA", "rsa:2048", false), ("Ed25519", "ed25519", false),
    ])
    func `OpenSSL with a client key is accepted only if the key is a P-256 key`(
        name: String,
        key: String,
        isAccepted: Bool
    ) async throws {
        let bed = try await startBed()
        let (keyFile, certificate) = (bed.scratch.file("key.pem"), bed.scratch.file("certificate.pem"))
        try await Program.run(
            "openssl",
            ["req", "-x509", "-nodes", "-subj", "/CN=patchbay", "-keyout", keyFile, "-out", certificate, "-newkey"]
                + key.split(separator: " ").map(String.init),
            in: bed.scratch
        )
        let client = try await Program(
            "openssl",
            [
                "s_client", "-connect", "127.0.0.1:\(bed.port)", "-tls1_3", "-quiet", "-cert", certificate, "-key",
                keyFile,
            ],
            in: bed.scratch,
            input: .pipe
        )
        // A refused client may have closed its input already.
        try? client.write("GET /health HTTP/1.1\r\nHost: broker\r\nConnection: close\r\n\r\n")
        _ = try await client.exitStatus()
        #expect(client.log.contains("HTTP/1.1 200 OK") == isAccepted, "\(client.log)")
    }

    @Test func `a session ticket does not carry the key of a client to another connection`() async throws {
        let bed = try await startBed()
        for step in ["-sess_out", "-sess_in"] {
            let client = try await Program(
                "openssl",
                ["s_client", "-connect", "127.0.0.1:\(bed.port)", step, bed.scratch.file("session")],
                in: bed.scratch,
                input: .pipe
            )
            try client.write("GET /health HTTP/1.1\r\nHost: broker\r\nConnection: close\r\n\r\n")
            _ = try await client.exitStatus()
            #expect(client.output.contains { $0.hasPrefix("New, TLSv1.3") }, "\(client.output)")
        }
    }

    @Test func `without a grant, the public routes answer and all others answer 401`() async throws {
        let bed = try await startBed()
        #expect(try await bed.status("/openapi.json") == "status 200")
        for path in ["/v1/endpoints", "/v1/remote", "/v1/audit", "/v1/status", "/mcp"] {
            #expect(try await bed.status(path) == "status 401", "\(path)")
        }
        #expect(try await bed.status("/v1/grants", "-X", "DELETE") == "status 401")
        let json = "Content-Type: application/json"
        let off = try await bed.status("/v1/remote", "-X", "PUT", "-H", json, "-d", "{\"enabled\":false}")
        #expect(off == "status 401")
        #expect(try await bed.status("/health", "-H", "Origin: https://evil.test") == "status 403")
        #expect(try await bed.status("/health", "-H", "Host: mac-mini.local") == "status 200")
    }

    @Test func `a local invite is not redeemed remotely, and stays valid`() async throws {
        let bed = try await startBed()
        let pair = try await bed.broker.start("pair", "--scope", "registry.read", "--scope", "secret.read")
        let string = try PairingString(try await pair.waitForLine("PATCHBAY:1:"))
        let body = "{\"token\":\"\(string.invite)\",\"client\":\"0123456789abcdefghijklmn\",\"name\":\"x\"}"
        let json = "Content-Type: application/json"
        #expect(try await bed.status("/v1/invites/redeem", "-H", json, "-d", body) == "status 401")

        let join = try await bed.broker.start("join", "--print", "-", input: .pipe)
        try join.write(string.description + "\n")
        #expect(try await join.exitStatus() == .exited(0), "\(join.log)")
        let token = try #require(join.output.first)
        #expect(try await bed.status("/v1/endpoints", "-H", "Authorization: Bearer \(token)") == "status 401")
    }

    @Test func `hanging handshakes delay neither the unix socket nor other handshakes`() async throws {
        let bed = try await startBed()
        let address = try #require(SocketAddress(numeric: "127.0.0.1", port: bed.port))
        var hanging: [CInt] = []
        defer { hanging.forEach { close($0) } }
        for _ in 0..<30 {
            hanging.append(try address.makeSocket().release())
            let number = try #require(hanging.last)
            _ = fcntl(number, F_SETFL, 0)
            try #require(try address.withRaw { connect(number, $0, $1) } == 0)
        }

        let status = try Self.status(try await bed.broker.ask("remote", "status", "--json"))
        #expect(status.state == .listening)
        #expect(try await bed.broker.ask("list").isEmpty == false)
        #expect(try await bed.status("/health") == "status 200")

        hanging.forEach { close($0) }
        hanging = []
        #expect(try await bed.status("/health") == "status 200")
        #expect(try Self.status(try await bed.broker.ask("remote", "status", "--json")).refusedHandshakes >= 20)
    }

    @Test func `off closes the connections, and a restart keeps the key and the state`() async throws {
        let bed = try await startBed()
        let client = try await Program(
            "openssl",
            ["s_client", "-connect", "127.0.0.1:\(bed.port)", "-quiet"],
            in: bed.scratch,
            input: .pipe
        )
        try client.write("GET /health HTTP/1.1\r\nHost: broker\r\n\r\n")
        try await client.waitForLine("HTTP/1.1 200 OK")
        try await bed.broker.restart()
        var status = try Self.status(try await bed.broker.ask("remote", "status", "--json"))
        #expect(status.state != .off && status.pin == bed.pin)
        #expect(try await bed.status("/health") == "status 200")

        let second = try await Program(
            "openssl",
            ["s_client", "-connect", "127.0.0.1:\(bed.port)", "-quiet"],
            in: bed.scratch,
            input: .pipe
        )
        try second.write("GET /health HTTP/1.1\r\nHost: broker\r\n\r\n")
        try await second.waitForLine("HTTP/1.1 200 OK")
        status = try Self.status(try await bed.broker.ask("remote", "off", "--json"))
        #expect(status.state == .off && status.pin == bed.pin)
        _ = try await second.exitStatus()
        try await eventually("no connection is left") {
            try Self.status(try await bed.broker.ask("remote", "status", "--json")).connections == 0
        }

        try await bed.broker.restart()
        #expect(try Self.status(try await bed.broker.ask("remote", "status", "--json")).state == .off)
    }

    @Test func `the listener can be turned off and on while machines connect`() async throws {
        let bed = try await startBed()
        let connect = """
            import socket, ssl, sys, threading
            context = ssl._create_unverified_context()
            def connect():
                while True:
                    try:
                        with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5) as plain:
                            context.wrap_socket(plain).close()
                    except OSError:
                        pass
            for _ in range(2):
                threading.Thread(target=connect).start()
            print("connecting", flush=True)
            """
        let clients = try await Program("python3", ["-c", connect, "\(bed.port)"], in: bed.scratch)
        try await clients.waitForLine("connecting")
        for _ in 0..<20 {
            _ = try await bed.broker.ask("remote", "off")
            _ = try await bed.broker.ask("remote", "on", "127.0.0.1:\(bed.port)")
        }
        // The clients share curl's address, and may hold all places of connections without a grant.
        clients.terminate()
        _ = try await clients.exitStatus()
        #expect(try await bed.status("/health") == "status 200")
    }

    @Test func `the configuration has precedence over the command`() async throws {
        let ports = try FreePorts.take(2)
        let configuration = "[api]\nport = \(ports[0])\nremote = \"127.0.0.1:\(ports[1])\"\n"
        let broker = try await RunningBroker(in: scratch, configuration: configuration)
        let status = try Self.status(try await broker.ask("remote", "--json"))
        #expect(status.configured && status.address == "127.0.0.1:\(ports[1])")

        let off = try await broker.start("remote", "off")
        #expect(try await off.exitStatus() != .exited(0))
        #expect(off.log.contains("api.remote"), "\(off.log)")
    }

    @Test func `a key file that others can read stops the broker with the remedy`() async throws {
        let ports = try FreePorts.take(2)
        let configuration = "[api]\nport = \(ports[0])\nremote = \"127.0.0.1:\(ports[1])\"\n"
        let broker = try await RunningBroker(in: scratch, configuration: configuration)
        let file = scratch.file("state/remote.pem")
        broker.daemon.terminate()
        _ = try await broker.daemon.exitStatus()
        #expect(chmod(file, 0o644) == 0)

        let daemon = try await Program(
            Executable.built("patchbayd"),
            ["--state-directory", scratch.file("state"), "--config", scratch.file("patchbay.toml")],
            in: scratch,
            environment: ["PATCHBAY_SOCKET": scratch.file("patchbay.sock")]
        )
        #expect(try await daemon.exitStatus() != .exited(0))
        #expect(daemon.log.contains("remote.pem") && daemon.log.contains("chmod 600"), "\(daemon.log)")
    }
}
