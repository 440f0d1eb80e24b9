import FoundationEssentials
import Model
import TestSupport
import Testing

/// Clients send garbage to the state debugger while an app sends its states.
///
/// Sends 64 MiB; with `PATCHBAY_SOAK=1` (`make soak`) 1 GiB.
@Suite(.serialized, .needs(.python), .timeLimit(.minutes(20)), .scratchFolder) struct DebugLinkSoakTests {
    private let scratch = ScratchFolder.current
    private static let size = ProcessInfo.processInfo.environment["PATCHBAY_SOAK"] == "1" ? 1 << 30 : 1 << 26
    private static let seed = 11
    /// The memory in KiB that four connections may need: an incomplete message of 64 MiB each, while its buffer grows.
    private static let memoryLimit = 4 * 2 * (64 << 10)

    @Test func `garbage needs bounded memory, has named errors, and harms no app`() async throws {
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(
            in: scratch,
            configuration: "[debuglink]\nenabled = true\nlisten = \"127.0.0.1:\(port)\"\n"
        )
        let app = try await DebugPeer.states(to: "127.0.0.1", port, in: scratch)
        try await eventually("the app is listed") { try await broker.endpoints().count == 1 }
        let id = try #require(try await broker.endpoints().first?.id.text)
        _ = try await broker.ask("approve", id)
        // The session with the app's tools stays open after the first command.
        _ = try await Self.lastState(of: id, broker)
        let before = Footprint.now(of: broker.daemon.processID)
        let began = ContinuousClock.now

        let garbage = try await DebugPeer.garbage(
            Self.size,
            seed: Self.seed,
            to: "127.0.0.1",
            port,
            within: .seconds(900),
            in: scratch
        )

        let time = ContinuousClock.now - began
        app.program.closeInput()
        let line = try await app.program.waitForLine("sent")
        let sent = try #require(line.split(separator: " ").last.flatMap { Int($0) })
        try await eventually("the last state is held") { try await Self.lastState(of: id, broker) == sent }
        let (after, peak) = (Footprint.now(of: broker.daemon.processID), Self.peak(of: broker.daemon.processID))
        print(
            "garbage: \(garbage.bytes >> 20) MiB over \(garbage.connections) connections in \(time); \(sent) states; "
                + "KiB \(before.kilobytes) -> \(after.kilobytes), at most \(peak); "
                + "descriptors \(before.others) -> \(after.others)"
        )
        #expect(garbage.bytes >= Self.size)
        #expect(peak < before.kilobytes + Self.memoryLimit)
        // The broker closes the last connections after the sender has ended.
        try await eventually("the connections of the garbage are closed") {
            Footprint.now(of: broker.daemon.processID).others <= before.others
        }
        // No garbage became an endpoint.
        #expect(try await broker.endpoints().map(\.id.text) == [id])
        try await eventually("each client was refused with a reason") {
            let status = try await broker.ask("status").joined(separator: "\n")
            return status.contains("1 app connected, \(garbage.connections) refused, the last one from 127.0.0.1:")
        }
    }

    private static func lastState(of id: String, _ broker: RunningBroker) async throws -> Int? {
        let lines = try await broker.ask("debug", "list", id, "--json")
        return try JSON(parsing: lines.joined(separator: "\n"))["states"]?.array?.last?["number"]?.int
    }

    /// The maximum resident memory of a process in KiB.
    private static func peak(of process: Int32) -> Int {
        let status = (try? Data(contentsOf: URL(filePath: "/proc/\(process)/status"))) ?? Data()
        let line = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return line.flatMap { Int($0.filter(\.isNumber)) } ?? .max
    }
}
