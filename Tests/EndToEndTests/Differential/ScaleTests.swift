import FoundationEssentials
import Glibc
import TestSupport
import Testing

extension Differential {
    /// Many consecutive and concurrent connections, and the delay of two small writes.
    @Suite(.scratchFolder) struct ScaleTests {
        private let scratch = ScratchFolder.current
        private static let hang = "select() is given the wrong descriptor, and the client is never read"
        private static let burst = "a full accept queue of usbmuxd is an error to it"
        /// At most 2,000 connections within 6 s; 10,000 with `PATCHBAY_SOAK=1` (`make soak`).
        private static let (inTurn, limit): (Int, Duration) =
            ProcessInfo.processInfo.environment["PATCHBAY_SOAK"] == "1" ? (10_000, .seconds(150)) : (2_000, .seconds(6))

        @Test(arguments: Forwarder.allCases)
        func `thousands of consecutive connections all echo`(forwarder: Forwarder) async throws {
            try await withEcho(forwarder) { port in
                let start = ContinuousClock.now
                var echoed = 0
                var isWhole = true
                while echoed < Self.inTurn, isWhole, ContinuousClock.now - start < Self.limit {
                    isWhole = await LoopbackClient.echoes(from: port, within: forwarder.timeLimit)
                    if isWhole { echoed += 1 }
                }
                let time = ContinuousClock.now - start

                forwarder.promises(
                    "up to \(Self.inTurn) connections in turn",
                    isWhole,
                    seen: isWhole ? "all \(echoed), \(time.formatted)" : "number \(echoed + 1) failed",
                    unless: Self.hang
                )
            }
        }

        @Test(arguments: Forwarder.allCases)
        func `64 concurrent connections all echo, ten times in a row`(forwarder: Forwarder) async throws {
            try await withEcho(forwarder) { port in
                let start = ContinuousClock.now
                var echoed: [Int] = []
                for _ in 0..<(forwarder == .iproxy ? 3 : 10) {
                    echoed.append(await Self.echoes(64, of: 1_000, port, forwarder.timeLimit))
                }

                forwarder.promises(
                    "bursts of 64",
                    echoed.allSatisfy { $0 == 64 },
                    seen: "\(echoed) echoed, \((ContinuousClock.now - start).formatted)",
                    unless: Self.burst
                )
            }
        }

        @Test(arguments: Forwarder.allCases)
        func `200 concurrent connections echo 64 KiB each`(forwarder: Forwarder) async throws {
            try await withEcho(forwarder) { port in
                let start = ContinuousClock.now
                let echoed = await Self.echoes(200, of: 65_536, port, forwarder.timeLimit * 3)

                forwarder.promises(
                    "200 at once",
                    echoed == 200,
                    seen: "\(echoed) echoed, \((ContinuousClock.now - start).formatted)",
                    unless: Self.burst
                )
            }
        }

        @Test(arguments: Forwarder.allCases)
        func `the second half of a reply is not delayed by the first`(forwarder: Forwarder) async throws {
            let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
            let bench = try await ForwarderFixture(forwarder, on: rig, in: scratch)
            // Two small writes with a gap, like a server that sends head and body separately.
            let gap = Duration.milliseconds(2)
            let app = try LoopbackServer(in: scratch) { socket in
                var one: CInt = 1
                setsockopt(socket, CInt(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<CInt>.size))
                let peer = PatternPeer(socket, deadline: .now + .seconds(30))
                while peer.receive(16).count == 16 {
                    _ = peer.send(0..<100)
                    usleep(UInt32(gap / .microseconds(1)))
                    _ = peer.send(100..<200)
                }
            }
            let local = try FreePorts.take()
            _ = try await bench.forward([(local[0], app.port)])

            let times = await LoopbackClient.talk(to: local[0], within: .seconds(20)) { peer in
                (0..<100).map { _ in
                    let start = ContinuousClock.now
                    _ = peer.send(0..<16)
                    _ = peer.receive(200)
                    return ContinuousClock.now - start
                }
            }
            let median = try #require(times?.sorted()[50])

            forwarder.promises(
                "a reply in two writes, 2 ms apart",
                // About 1 ms more on an idle machine; the failure to detect is 40 ms.
                median - gap < .milliseconds(10),
                seen: "median \((median - gap) / .milliseconds(1)) ms more than the gap",
                unless: "it leaves Nagle's algorithm on"
            )
        }

        /// Counts the echoes within the limit over `count` concurrent connections.
        private static func echoes(_ count: Int, of size: Int, _ port: UInt16, _ limit: Duration) async -> Int {
            await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<count {
                    group.addTask { await LoopbackClient.echoes(size, from: port, within: limit) }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
        }

        private func withEcho(_ forwarder: Forwarder, _ body: (UInt16) async throws -> Void) async throws {
            let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
            let bench = try await ForwarderFixture(forwarder, on: rig, in: scratch)
            let echo = try EchoServer(in: scratch)
            let local = try FreePorts.take()
            let program = try await bench.forward([(local[0], echo.port)])
            try await body(local[0])
            #expect(program.isRunning)
        }
    }
}
