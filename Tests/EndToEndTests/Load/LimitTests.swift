import Glibc
import Synchronization
import TestSupport
import Testing

/// A client over a limit is refused, and the clients within the limit are not affected.
@Suite(.serialized, .needs(.usbmuxd), .timeLimit(.minutes(2)), .scratchFolder) struct LimitTests {
    private let scratch = ScratchFolder.current

    /// `NativeUsbmuxClient.streamLimit`: the number of usbmuxd streams that Patchbay uses.
    private static let streamLimit = 512

    private struct ClientResult: Sendable {
        var isConnected = false
        var end = PatternPeer.End.open
        var wait = Duration.zero
    }

    private final class Gate: Sendable {
        let refused = Atomic(0)
        let isOver = Atomic(false)

        /// Waits until all clients inside are counted, before they leave.
        func wait(for count: Int) async {
            try? await eventually("the others are refused") { refused.load(ordering: .relaxed) == count }
            isOver.store(true, ordering: .relaxed)
        }
    }

    @Test func `a client over usbmuxd's stream limit is reset after 10 s, and the others stay`() async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let echo = try EchoServer(in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)
        let port = try await broker.forward("tcp:0:\(echo.port)", "--device", Phones.one)
        let gate = Gate()

        let results = await Self.results(Self.streamLimit + 8, at: port, gate)
        let outside = results.filter { !$0.isConnected }
        let counted = try await broker.ask("tunnels", "--json").joined()

        #expect(results.count { $0.isConnected && $0.end == .open } == Self.streamLimit)
        #expect(outside.count == 8)
        #expect(outside.allSatisfy { $0.end == .broken(ECONNRESET) && $0.wait < .seconds(15) })
        #expect(counted.contains("\"limit\":8"), "\(counted)")
        // Streams are available again, and usbmuxd is not affected.
        #expect(await LoopbackClient.echoes(from: port, within: .seconds(10)))
    }

    private static func results(_ count: Int, at port: UInt16, _ gate: Gate) async -> [ClientResult] {
        await withTaskGroup(of: ClientResult?.self) { group in
            for _ in 0..<count { group.addTask { await connect(port, gate) } }
            group.addTask {
                await gate.wait(for: count - streamLimit)
                return nil
            }
            var results: [ClientResult] = []
            for await result in group { if let result { results.append(result) } }
            return results
        }
    }

    /// Echoes once, stays until all clients may leave, and echoes again.
    private static func connect(_ port: UInt16, _ gate: Gate) async -> ClientResult {
        let start = ContinuousClock.now
        return await LoopbackClient.talk(to: port, within: .seconds(40)) { peer in
            var result = ClientResult()
            _ = peer.send(0..<100)
            let first = peer.receive(100)
            result.wait = ContinuousClock.now - start
            result.end = first.end
            guard first.count == 100 else {
                gate.refused.add(1, ordering: .relaxed)
                return result
            }
            result.isConnected = true
            while !gate.isOver.load(ordering: .relaxed) { usleep(100_000) }
            _ = peer.send(100..<200)
            let second = peer.receive(100, from: 100)
            result.end = second == PatternPeer.Received(count: 100) ? .open : .closed
            return result
        } ?? ClientResult()
    }

    @Test func `a free port is found and reported within 10 ms`() async throws {
        let broker = try await RunningBroker(in: scratch)
        let target = "{\"device\":{\"udid\":\"\(Phones.one)\",\"port\":9876}}"
        let body = "{\"local\":\"tcp:0\",\"target\":\(target),\"noRebind\":false,\"persistent\":false}"
        var milliseconds: [Double] = []
        for _ in 0..<20 {
            let lines = try await Program.run(
                "curl",
                [
                    "-sS", "--unix-socket", broker.socket, "-H", "Content-Type: application/json", "-d", body, "-w",
                    "\n%{http_code} %{time_total}\n", "http://localhost/v1/tunnels",
                ],
                in: scratch
            )
            let words = (lines.last ?? "").split(separator: " ")
            #expect(words.first == "201" && lines.joined().contains("tcp:127.0.0.1:"), "\(lines)")
            milliseconds.append((words.last.flatMap { Double($0) } ?? 1) * 1_000)
        }
        let median = milliseconds.sorted()[10]

        print("tcp:0: answered after \(median) ms (median), \(milliseconds.max() ?? 0) ms at most")
        // About 10 ms on an idle machine.
        #expect(median < 50)
    }
}
