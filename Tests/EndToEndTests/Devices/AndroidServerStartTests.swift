import FoundationEssentials
import Glibc
import Model
import TestSupport
import Testing

/// The start of an adb server by the broker, on a port of the test's own network.
@Suite(.needs(.adb, .namespaces), .timeLimit(.minutes(2)), .scratchFolder) struct AndroidServerStartTests {
    private let scratch = ScratchFolder.current
    private static let port = 5_999

    private func broker(startsServer: Bool, _ network: NetworkNamespace) async throws -> RunningBroker {
        try await RunningBroker(
            in: scratch,
            namespace: network,
            configuration:
                "[api]\ntcp = false\n[devices]\nadb = \"127.0.0.1:\(Self.port)\"\nadb_start = \(startsServer)\n"
        )
    }

    /// The process that listens on the port of the server; nil if there is none.
    private func listener(_ network: NetworkNamespace) async throws -> Int? {
        let lines = try await network.run("ss", ["-Hltnp", "sport", "=", ":\(Self.port)"])
        let match = lines.first?.firstMatch(of: /users:\(\("adb",pid=(?<id>\d+)/)
        return match.flatMap { Int($0.id) }
    }

    private func status(_ broker: RunningBroker) async throws -> SourceStatus {
        let text = try await broker.ask("status", "--json").joined()
        let status = try JSONCoding.decoder().decode(BrokerStatus.self, from: Data(text.utf8))
        return try #require(status.sources.first { $0.name == "adb" })
    }

    @Test func `with adb_start the broker starts a server where none runs, uses it, and leaves it running`()
        async throws
    {
        let network = try await NetworkNamespace(in: scratch)
        let broker = try await broker(startsServer: true, network)
        let server = try await eventually("a server listens") { try await listener(network) }
        scratch.atEnd { kill(pid_t(server), SIGKILL) }
        try await eventually("it is used") { try await status(broker).state == .ok }
        #expect(try await status(broker).detail.contains("no phone is attached"))

        try await broker.restart()
        try await eventually("it is used again") { try await status(broker).state == .ok }
        broker.daemon.terminate()
        #expect(try await broker.daemon.exitStatus() == .exited(0))
        #expect(try await listener(network) == server)

        kill(pid_t(server), SIGKILL)
        try await eventually("it is gone") { try await listener(network) == nil }
        try await broker.restart()
        let next = try await eventually("another one is started") { try await listener(network) }
        scratch.atEnd { kill(pid_t(next), SIGKILL) }
        #expect(next != server)
    }

    @Test func `without adb_start no server is started, also if the configuration names one`() async throws {
        let network = try await NetworkNamespace(in: scratch)
        let broker = try await broker(startsServer: false, network)
        try await Task.sleep(for: .seconds(3))
        #expect(try await listener(network) == nil)
        let status = try await status(broker)
        #expect(status.state == .missing && status.hint == "`adb start-server`", "\(status)")
        let children = try await Program.run("sh", ["-c", "pgrep -P \(broker.daemon.processID) || true"], in: scratch)
        #expect(children.isEmpty)
    }
}
