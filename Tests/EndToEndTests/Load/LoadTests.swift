import FoundationEssentials
import TestSupport
import Testing

@Suite(.serialized, .needs(.usbmuxd, .python), .scratchFolder) struct LoadTests {
    private let scratch = ScratchFolder.current
    private let phone = "00008030-001A2B3C4D5E6F70"

    @Test(.timeLimit(.minutes(2)))
    func `1000 connections at once to an endpoint echo 64 KiB each, on a fixed number of threads`() async throws {
        let echo = try EchoServer(in: scratch)
        let broker = try await RunningBroker(in: scratch)
        _ = try await broker.ask("add", "echo", "127.0.0.1:\(echo.port)", "--kind", "tcp")
        let port = try await broker.forward("tcp:0", "--endpoint", "echo")
        // One burst before the measurement, so that all threads of one connection exist.
        #expect(try await burst(1, 65_536, port, scratch) == "intact 1 of 1")
        let before = try threads(of: broker)

        #expect(try await burst(1_000, 65_536, port, scratch) == "intact 1000 of 1000")

        // Swift's thread pool grows to at most one thread per core.
        #expect(try threads(of: broker) <= before + ProcessInfo.processInfo.activeProcessorCount)
    }

    @Test(.timeLimit(.minutes(2)))
    func `2000 connections at once to an endpoint all echo`() async throws {
        let echo = try EchoServer(in: scratch)
        let broker = try await RunningBroker(in: scratch)
        _ = try await broker.ask("add", "echo", "127.0.0.1:\(echo.port)", "--kind", "tcp")
        let port = try await broker.forward("tcp:0", "--endpoint", "echo")

        #expect(try await burst(2_000, 4_096, port, scratch) == "intact 2000 of 2000")
    }

    @Test(.timeLimit(.minutes(2)))
    func `400 connections at once through the real usbmuxd echo 64 KiB each`() async throws {
        let echo = try EchoServer(in: scratch)
        let rig = try await UsbmuxdFixture([phone], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)
        let port = try await broker.forward("tcp:0:\(echo.port)", "--device", phone)

        #expect(try await burst(400, 65_536, port, scratch) == "intact 400 of 400")
        #expect(try await broker.ask("status").joined().contains("patchbayd"))
    }

    private func burst(_ count: Int, _ size: Int, _ port: UInt16, _ scratch: ScratchFolder) async throws -> String {
        let script = #filePath.dropLast("LoadTests.swift".count) + "burst.py"
        return try await Program.run("python3", [String(script), "\(port)", "\(count)", "\(size)"], in: scratch)
            .joined(separator: "\n")
    }

    private func threads(of broker: RunningBroker) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(broker.daemon.processID)/task").count
    }
}
