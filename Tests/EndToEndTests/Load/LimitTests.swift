import Glibc
import TestSupport
import Synchronization
import Testing

/// What is beyond a limit is refused, and what is within it does not notice.
@Suite(.serialized, .needs(.usbmuxd), .timeLimit(.minutes(2))) struct LimitTests {
    /// `UsbmuxConnectionLimit.standard`: so many streams of usbmuxd are ours.
    private static let places = 512

    private struct Guest: Sendable {
        var isAtHome = false
        var end = PatternPeer.End.open
        var wait = Duration.zero
    }

    private final class Hall: Sendable {
        let refused = Atomic(0)
        let isOver = Atomic(false)

        /// Those outside are told; only then do those inside leave.
        func wait(for count: Int) async {
            try? await eventually(within: .seconds(30), "the others are refused") {
                refused.load(ordering: .relaxed) == count
            }
            isOver.store(true, ordering: .relaxed)
        }
    }

    @Test func `beyond the streams of usbmuxd a client is reset after 10 s, and the others stay`() async throws {
        try await withScratchFolder { scratch in
            let rig = try await PhoneRig([Phones.one], in: scratch)
            let echo = try EchoServer(in: scratch)
            let broker = try await RunningBroker(in: scratch, phones: rig)
            let port = try await broker.forward("tcp:0:\(echo.port)", "--device", Phones.one)
            let hall = Hall()

            let guests = await Self.guests(Self.places + 8, at: port, hall)
            let outside = guests.filter { !$0.isAtHome }
            let counted = try await broker.ask("tunnels", "--json").joined()

            #expect(guests.count { $0.isAtHome && $0.end == .open } == Self.places)
            #expect(outside.count == 8)
            #expect(outside.allSatisfy { $0.end == .broken(ECONNRESET) && $0.wait < .seconds(15) })
            #expect(counted.contains("\"limit\":8"), "\(counted)")
            // There is room again, and usbmuxd has not noticed anything.
            #expect(await LoopbackClient.echoes(from: port, within: .seconds(10)))
        }
    }

    private static func guests(_ count: Int, at port: UInt16, _ hall: Hall) async -> [Guest] {
        await withTaskGroup(of: Guest?.self) { group in
            for _ in 0..<count { group.addTask { await visit(port, hall) } }
            group.addTask {
                await hall.wait(for: count - places)
                return nil
            }
            var guests: [Guest] = []
            for await guest in group { if let guest { guests.append(guest) } }
            return guests
        }
    }

    /// Echoes once, stays until everybody leaves, and echoes again.
    private static func visit(_ port: UInt16, _ hall: Hall) async -> Guest {
        let start = ContinuousClock.now
        return await LoopbackClient.talk(to: port, within: .seconds(40)) { peer in
            var guest = Guest()
            _ = peer.send(0..<100)
            let first = peer.receive(100)
            guest.wait = ContinuousClock.now - start
            guest.end = first.end
            guard first.count == 100 else {
                hall.refused.add(1, ordering: .relaxed)
                return guest
            }
            guest.isAtHome = true
            while !hall.isOver.load(ordering: .relaxed) { usleep(100_000) }
            _ = peer.send(100..<200)
            let second = peer.receive(100, from: 100)
            guest.end = second == PatternPeer.Received(count: 100) ? .open : .closed
            return guest
        } ?? Guest()
    }

    @Test func `a free port is found and said within 10 ms`() async throws {
        try await withScratchFolder { scratch in
            let broker = try await RunningBroker(in: scratch)
            let target = "{\"device\":{\"udid\":\"\(Phones.one)\",\"port\":9876}}"
            let body = "{\"local\":\"tcp:0\",\"target\":\(target),\"noRebind\":false,\"isKept\":false}"
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
            // 10 ms on an idle machine.
            #expect(median < 50)
        }
    }
}
