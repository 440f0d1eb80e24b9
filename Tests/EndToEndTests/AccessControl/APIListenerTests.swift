import FoundationEssentials
import Glibc
import Model
import TestSupport
import Testing

/// The unix socket and the TCP listener of a real broker: authentication, limits and malformed requests.
@Suite(.serialized, .scratchFolder) struct APIListenerTests {
    private let scratch = ScratchFolder.current
    private static let folder = String(#filePath.dropLast("APIListenerTests.swift".count))
    private static let script = folder + "api_client.py"
    private static let users = folder + "users.py"

    /// Runs a broker with its own TCP listener. Other users can enter its folder and its unix socket.
    private func startBroker() async throws -> (RunningBroker, port: String) {
        chmod(scratch.path, 0o711)
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(
            in: scratch,
            configuration: "[api]\nport = \(port)\nallow_any_user = true\n"
        )
        return (broker, String(port))
    }

    private func run(_ arguments: String...) async throws -> [String] {
        try await Program.run("python3", [Self.script] + arguments, in: scratch)
    }

    private func runAsUsers(_ arguments: String...) async throws -> [String] {
        try await Program.run("python3", [Self.users] + arguments, in: scratch)
    }

    @Test func `an invite redeemed over TCP gives access, and every wrong token gets the same 401`()
        async throws
    {
        let (broker, port) = try await startBroker()
        let lines = try await run("refusals", broker.socket, port)

        #expect(lines == ["good 200", "spent 401 True", "late 401 True", "1 kind of refusal: {401}"])
    }

    @Test func `malformed requests are rejected on both listeners and later bytes are not parsed as requests`()
        async throws
    {
        let (broker, port) = try await startBroker()
        let lines = try await run("border", broker.socket, port)

        #expect(lines.count == 1 && lines.last?.hasSuffix(" 0 wrong") == true, "\(lines)")
        #expect(!broker.daemon.log.contains("pbg_"))
    }

    @Test(arguments: ["names", "pages"])
    func `requests that a web page can send are rejected on every listener, with and without a token`(
        table: String
    ) async throws {
        let (broker, port) = try await startBroker()
        let lines = try await run(table, broker.socket, port)

        #expect(lines.count == 1 && lines[0].hasSuffix(" 0 wrong, the token 200"), "\(lines)")
    }

    @Test func `an empty ID in a path matches no object`() async throws {
        let (broker, port) = try await startBroker()
        let lines = try await run("slashes", broker.socket, port)

        #expect(lines == ["404 404 405 405 404", "200"])
    }

    @Test func `a token in a URL or a cookie is rejected, revoked and not logged`() async throws {
        let (broker, port) = try await startBroker()
        let lines = try await run("exposed", broker.socket, port)

        #expect(lines.last == "8 cases, 0 wrong", "\(lines)")
        for token in lines[0].split(separator: " ") {
            let secret = String(token.split(separator: "_")[2])
            #expect(!broker.daemon.log.contains(secret))
        }
    }

    @Test func `200 clients with an unfinished request head are closed after 5 s and block no other client`()
        async throws
    {
        let (_, port) = try await startBroker()
        let lines = try await run("slow", port)

        #expect(lines == ["408 and closed"])
    }

    @Test func `the open streams of one grant are limited and do not block other clients`() async throws {
        let (broker, port) = try await startBroker()
        let lines = try await run("streams", broker.socket, port, "260")

        #expect(
            lines == ["64 open, 429 grant G has 64 connections open already", "other 200 none 200", "one more 200"]
        )
    }

    @Test func `event streams and idle connections of the owner's programs leave places for commands and grants`()
        async throws
    {
        let (broker, port) = try await startBroker()
        let lines = try await run("owners", broker.socket, port)

        #expect(lines == ["128 streams: a command 200, a grant 200", "300 idle: a command 200, a grant 200"])
    }

    @Test func `idle connections without a grant do not block other clients`() async throws {
        let (_, port) = try await startBroker()
        let lines = try await run("silent", port, "400")

        #expect(lines == ["200 at once"])
    }

    @Test func `an event stream is closed within 1 s of the expiry of its grant`() async throws {
        let (broker, port) = try await startBroker()
        let lines = try await run("expiry", broker.socket, port)

        #expect(lines == ["in time"])
    }

    @Test func `grants, redeemed invites and revocations survive a restart`() async throws {
        let (broker, port) = try await startBroker()
        let tokens = try await run("keep", broker.socket, port)

        try await broker.restart()

        let kept = try await Program("python3", [Self.script, "kept", broker.socket, port], in: scratch, input: .pipe)
        try kept.write(tokens[0] + "\n")
        _ = try await kept.exitStatus(within: .seconds(20))
        #expect(kept.output == ["200 401 401 201 None"], "\(kept.log)")
    }

    @Test(.enabled(if: geteuid() == 0, "only root can be somebody else"))
    func `another user is denied owner routes, may request access, and is in the audit log`() async throws {
        let (broker, _) = try await startBroker()
        let lines = try await runAsUsers("nobody", broker.socket)

        #expect(lines == ["403 403 403 403 403 403 200 201"])
        let log = try String(contentsOfFile: "\(scratch.path)/state/audit.jsonl", encoding: .utf8)
        #expect(log.contains("\"detail\":\"GET /v1/grants\""))
        #expect(log.contains("\"uid\":65534"))
    }

    @Test(.enabled(if: geteuid() == 0, "only root can be somebody else"))
    func `a grant of one user is rejected for other users on both listeners`() async throws {
        let (broker, port) = try await startBroker()
        let lines = try await runAsUsers("bound", broker.socket, port)

        #expect(lines == ["redeemed by 401 401", "used by 200 401 401 401"])
    }

    @Test(.needs(.root, .namespaces))
    func `members of the group patchbay are owners, as primary or 60th supplementary group`()
        async throws
    {
        chmod(scratch.path, 0o711)
        let groups = scratch.file("group")
        try scratch.write("root:x:0:\npatchbay:x:4242:\n", to: "group")
        let broker = try await RunningBroker(
            in: scratch,
            // Only the daemon's mount namespace has this group.
            commandPrefix: [
                "unshare", "--mount", "--propagation", "private", "sh", "-ec",
                "mount --bind \(groups) /etc/group; exec \"$@\"", "sh",
            ],
            configuration: "[api]\ntcp = false\nallow_any_user = true\n"
        )

        let lines = try await runAsUsers("member", broker.socket, "4242")

        #expect(lines == ["403", "403", "200", "200", "200"])
        let mode = try await Program.run("stat", ["--format=%a %g", broker.socket], in: scratch)
        #expect(mode == ["666 4242"])
    }

    @Test(.enabled(if: geteuid() == 0, "only root can be somebody else"))
    func `one user gets 64 connections, owners keep 8 reserved ones, and waiting requests are answered`() async throws {
        let (broker, port) = try await startBroker()
        let lines = try await runAsUsers("guests", broker.socket, port)

        #expect(lines == ["one more: 429 429 another: 200", "owners come in: 8 at once", "who waited: 200"])
    }

    @Test(.needs(.root, .namespaces))
    func `an approval does not apply to another process that reuses the requester's PID`() async throws {
        let lines = try await Program.run(
            "unshare",
            [
                "--pid", "--fork", "--mount-proc", "--kill-child", "--", "python3", Self.users, "recycled",
                try Executable.built("patchbayd"), scratch.file("state"), scratch.file("p.sock"),
            ],
            in: scratch,
            environment: [
                "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(scratch.file("no-bus"))",
                "USBMUXD_SOCKET_ADDRESS": scratch.file("no-usbmuxd"), "HOME": scratch.path,
            ]
        )

        #expect(lines == ["alive: 200", "recycled: 409", "asking now: 0"])
    }

    @Test(.needs(.zbar)) func `the response for a new invite contains a QR code on request`()
        async throws
    {
        let (broker, _) = try await startBroker()
        func invite(_ more: String) async throws -> IssuedInvite {
            let spec = #"{"permissions":{"scopes":["registry.read"],"selector":"all"}\#(more)}"#
            let lines = try await Program.run(
                "curl",
                [
                    "-sS", "--unix-socket", broker.socket, "-H", "Content-Type: application/json", "-d", spec,
                    "http://localhost/v1/invites",
                ],
                in: scratch
            )
            return try JSONCoding.decoder().decode(IssuedInvite.self, from: Data(lines.joined().utf8))
        }
        let plain = try await invite("")
        let drawn = try await invite(#","qr":true"#)

        #expect(plain.qr == nil && plain.pairing != nil)
        guard case .svg(let svg)? = drawn.qr else {
            Issue.record("there is no image")
            return
        }
        try scratch.write(svg, to: "code.svg")
        let pixels = ["--zoom", "4", "--output", scratch.file("code.png"), scratch.file("code.svg")]
        try await Program.run("rsvg-convert", pixels, in: scratch)
        let read = try await Program.run("zbarimg", ["--quiet", "--raw", scratch.file("code.png")], in: scratch)
        #expect(read == [try #require(drawn.pairing)])
        #expect(!broker.daemon.log.contains("pbi_"))
    }
}
