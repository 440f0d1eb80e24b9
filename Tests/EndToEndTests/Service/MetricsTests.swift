import FoundationEssentials
import TestSupport
import Testing

/// `/metrics` of a running broker.
@Suite(.needs(.python), .scratchFolder) struct MetricsTests {
    private let scratch = ScratchFolder.current

    private func metrics(_ broker: RunningBroker, in scratch: ScratchFolder) async throws -> String {
        let words = ["-sS", "-f", "--unix-socket", broker.socket, "http://localhost/metrics"]
        return try await Program.run("curl", words, in: scratch).joined(separator: "\n") + "\n"
    }

    @Test(.needs(.prometheus)) func `promtool accepts the metrics of a broker that was used`() async throws {
        let app = try await SampleApp(address: "127.0.0.1", port: 0, in: scratch)
        let text = """
            [[endpoint]]
            name = "shop"
            address = "127.0.0.1"
            port = \(app.port)
            kind = "appreveal"
            """
        let broker = try await RunningBroker(in: scratch, configuration: text)
        try await eventually("the app is online") { try await broker.ask("list").joined().contains("online") }
        _ = try? await broker.ask("approve", "shop")
        _ = try await broker.ask("call", "shop", "launch_context")
        _ = try? await broker.ask("show", "no-such-endpoint")
        let port = try await broker.forward("tcp:0", "--endpoint", "shop")
        _ = try? await broker.fetch("/", port: port)

        let text2 = try await metrics(broker, in: scratch)

        for line in [
            "patchbay_endpoints{state=\"online\"} 1", "patchbay_tunnels 1",
            "patchbay_call_duration_seconds_count{result=\"answered\"} 1",
            "patchbay_source_healthy{source=\"bonjour\"} 0",
        ] { #expect(text2.contains("\n\(line)\n"), "\(line) in \(text2)") }
        #expect(text2.contains(#/patchbay_relayed_bytes_total\{direction="down"\} [1-9]/#), "\(text2)")
        try scratch.write(text2, to: "metrics")
        let lint = try await Program(
            "sh",
            ["-c", "promtool check metrics <\"$0\"", scratch.file("metrics")],
            in: scratch
        )
        #expect(try await lint.exitStatus() == .exited(0), "\(lint.log)")
        #expect(!lint.log.contains("patchbay_"), "\(lint.log)")
    }
}
