import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// Unix sockets of a broker that runs as a user of its own, as under systemd.
@Suite(.needs(.root, .python), .scratchFolder) struct ServiceSocketTests {
    private let scratch = ScratchFolder.current
    private static let user = "64001"

    private static func asUser(_ user: String) -> [String] {
        ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups"]
    }

    @Test func `a tunnel of the service serves the user who asks, and no other, and names a path that works`()
        async throws
    {
        let folder = try scratch.makeFolder("run")
        try await Program.run("chown", ["-R", Self.user, scratch.path], in: scratch)
        try await Program.run("chmod", ["755", scratch.path, folder], in: scratch)
        let app = try await SampleApp(in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            commandPrefix: ["env", "RUNTIME_DIRECTORY=\(folder)"] + Self.asUser(Self.user),
            configuration: """
                [api]
                tcp = false
                [[endpoint]]
                name = "shop"
                address = "127.0.0.1"
                port = \(app.port)
                kind = "appreveal"
                """
        )
        try await eventually("the app is online") { try await broker.ask("list").joined().contains("online") }
        _ = try? await broker.ask("approve", "shop")

        let refused = try await broker.start(
            "forward",
            "unix:\(scratch.path)/own.sock",
            "--endpoint",
            "shop",
            "--detach"
        )
        #expect(try await refused.exitStatus() != .exited(0))
        #expect(refused.log.contains("the broker runs as user \(Self.user)"), "\(refused.log)")
        #expect(refused.log.contains("unix:\(folder)/own.sock"), "\(refused.log)")

        let path = "\(folder)/own.sock"
        _ = try await broker.ask("forward", "unix:\(path)", "--endpoint", "shop", "--detach")
        func fetch(_ prefix: [String]) async throws -> Bool {
            let words = prefix + ["curl", "-sS", "-o", "/dev/null", "--max-time", "5", "--unix-socket", path]
            let curl = try await Program(words[0], Array(words.dropFirst()) + ["http://localhost/"], in: scratch)
            return try await curl.exitStatus() == .exited(0)
        }
        #expect(try await fetch(["env"]))
        #expect(try await !fetch(Self.asUser("64002")))
    }
}
