import FoundationEssentials
import TestSupport
import Testing

/// Every way to lose the access to an app, with every way to use it.
@Suite(.needs(.python), .serialized, .timeLimit(.minutes(3)), .scratchFolder) struct AccessEndTests {
    private let scratch = ScratchFolder.current
    private static let script = String(#filePath.dropLast("AccessEndTests.swift".count)) + "access_end.py"

    /// A way to lose the access, and the number of connections that carry bytes before: three for each client. After a
    /// denial it is the number of those that are tried.
    private static let ways = [("rm", 6), ("reload", 6), ("registrar", 6), ("revoke", 3), ("expire", 3), ("deny", 3)]

    @Test(arguments: ways)
    func `when the access to an app has ended, no call reaches it, and no connection to it is open`(
        way: String,
        connections: Int
    ) async throws {
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\nport = \(port)\n")
        let arguments = [
            Self.script, way, broker.socket, "\(port)", "\(broker.daemon.processID)", scratch.file("patchbay.toml"),
        ]

        let lines = try await Program.run("python3", arguments, in: scratch, within: .seconds(60))

        #expect(lines == Self.expected(of: connections))
    }

    @Test(.needs(.root, .namespaces, .avahi)) func `the same after the approval of an advertised app was revoked`()
        async throws
    {
        let host = try await AvahiHost(in: scratch)
        let broker = try await RunningBroker(in: scratch, on: host)

        let lines = try await host.run(
            "python3",
            [Self.script, "unapprove", broker.socket, "7282", "0", scratch.file("patchbay.toml")]
        )

        #expect(lines == Self.expected(of: 6))
    }

    private static func expected(of connections: Int) -> [String] {
        ["0 of \(connections) connections carry bytes, 0 are open", "0 calls reach the app, 0 wait"]
    }
}
