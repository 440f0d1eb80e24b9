import FoundationEssentials
import Glibc
import Model
import TestSupport
import Testing

/// The dashboard's page and the sign-in of owners, with real users and listeners.
@Suite(.needs(.root, .python), .scratchFolder) struct DashboardTests {
    private let scratch = ScratchFolder.current
    private static let script = String(#filePath.dropLast("DashboardTests.swift".count)) + "dashboard.py"

    private func startBroker(_ more: String = "") async throws -> (RunningBroker, port: String, other: String) {
        chmod(scratch.path, 0o711)
        let ports = try FreePorts.take(2)
        let configuration = "[api]\nport = \(ports[0])\nallow_any_user = true\n"
        let remote = more.isEmpty ? "" : "\(more) = \"127.0.0.1:\(ports[1])\"\n"
        let broker = try await RunningBroker(in: scratch, configuration: configuration + remote)
        return (broker, "\(ports[0])", "\(ports[1])")
    }

    private func run(_ arguments: String..., within limit: Duration = .seconds(60)) async throws -> [String] {
        try await Program.run("python3", [Self.script] + arguments, in: scratch, within: limit)
    }

    @Test func `a session is for its user on loopback, and everything else is refused`() async throws {
        let (broker, port, remote) = try await startBroker("remote")
        let folder = try scratch.makeFolder("agent")
        let socket = "\(folder)/patchbay.sock"
        _ = try await broker.ask("pair", "--socket", socket)
        let lines = try await run("attacks", broker.socket, port, remote, socket)

        #expect(
            lines == [
                "index: 200 text/html; charset=utf-8 no-cache",
                "policy: default-src 'self'; img-src 'self' blob: data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
                "headers: nosniff no-referrer", "gzip: gzip True", "unchanged: 304",
                "files: {(200, 'public, max-age=31536000, immutable')}", "old hash: 404", "remote: 200 unix 404",
                "codes: 401 403", "other user: 401", "other listeners: 403 403", "other origin: 403 403 403 421",
                "page from none: 200", "page from same-origin: 200", "page from same-site: 403",
                "page from cross-site: 403", "wrong code: 401",
                "right code: 201 {'dashboard': 0} Dashboard of root", "second use: 401", "session: True 200 200 403",
                "session of another user: 401", "session elsewhere: 401 401 401 400", "no new code: 403",
                "invite: 201 True True", "listed: [{'dashboard': 0}]", "topics: True", "sign out: 200",
                "stream: ended", "after: 401", "audit: 1 1",
            ]
        )
        #expect(!broker.daemon.log.contains("pbg_"))
    }

    @Test func `a code is refused after 60 s`() async throws {
        let (broker, port, _) = try await startBroker()

        #expect(try await run("late", broker.socket, port, within: .seconds(90)) == ["late: 401"])
    }

    @Test func `a member of the owners' group is an owner in a browser until it leaves the group`() async throws {
        chmod(scratch.path, 0o711)
        let port = try FreePorts.take()[0]
        let (group, accounts) = (scratch.file("group"), scratch.file("passwd"))
        try scratch.write("root:x:0:\npatchbay:x:4300:anna\n", to: "group")
        try scratch.write(
            "root:x:0:0::/root:/bin/sh\nanna:x:4242:4242::/:/bin/sh\nbert:x:4243:4243::/:/bin/sh\n",
            to: "passwd"
        )
        // The broker has a user database of its own.
        let mounts = #"mount --bind "$1" /etc/group && mount --bind "$2" /etc/passwd && shift 2 && exec "$@""#
        let broker = try await RunningBroker(
            in: scratch,
            commandPrefix: ["unshare", "--mount", "sh", "-c", mounts, "sh", group, accounts],
            configuration: "[api]\nport = \(port)\nallow_any_user = true\n"
        )
        let lines = try await run("member", broker.socket, "\(port)", group, "4300", within: .seconds(120))

        #expect(
            lines == [
                "no member: [200, 403]", "root with its code: 401",
                "member: Dashboard of anna {'dashboard': 4242}", "own: 200", "others: 401 401", "after the group: 401",
                "stream: ended",
            ]
        )
    }

    @Test func `the command prints an address whose code signs in`() async throws {
        let (broker, port, _) = try await startBroker()
        let lines = try await broker.ask("dashboard", "--no-open")
        let address = try #require(lines.first)
        #expect(address.hasPrefix("http://127.0.0.1:\(port)/#code="))
        let body = #"{"code":"\#(address.split(separator: "=").last ?? "")"}"#
        let answer = try await Program.run(
            "curl",
            [
                "-sS", "-H", "Content-Type: application/json", "-d", body,
                "http://127.0.0.1:\(port)/v1/dashboard/sessions",
            ],
            in: scratch
        )
        #expect(answer.joined().contains("\"token\":\"pbg_"))
        #expect(try await broker.ask("grants").joined().contains("browser of user 0"))
    }
}
