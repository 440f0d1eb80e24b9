import Glibc
import TestSupport
import Testing

extension Differential {
    /// Each connection reaches its own port or ends soon.
    @Suite(.scratchFolder) struct ConnectTests {
        private let scratch = ScratchFolder.current
        private static let hang = "select() is given the wrong descriptor, and the client is never read"
        private static let burst = "a full accept queue of usbmuxd is an error to it"

        @Test(arguments: Forwarder.allCases)
        func `a refused port closes only its own client, without delay`(forwarder: Forwarder) async throws {
            let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
            let bench = try await ForwarderFixture(forwarder, on: rig, in: scratch)
            let echo = try EchoServer(in: scratch)
            let local = try FreePorts.take(3)
            let program = try await bench.forward([(local[0], local[2]), (local[1], echo.port)])

            let start = ContinuousClock.now
            let refused = await LoopbackClient.talk(to: local[0], within: .seconds(10)) { $0.receive() }
            let time = ContinuousClock.now - start

            forwarder.promises(
                "end at a refused port",
                refused?.count == 0 && refused?.end != .open && time < .seconds(2),
                seen: "\(refused.map { "\($0.end)" } ?? "no listener") after \(time.formatted)"
            )
            try await program.waitForLine("Error connecting to device")
            let echoes = await LoopbackClient.echoes(from: local[1], within: forwarder.timeLimit)
            forwarder.promises("echo beside a refused port", echoes, seen: "\(echoes)", unless: Self.hang)
            #expect(program.isRunning)
            if forwarder == .patchbay {
                // The reset distinguishes a refused port from an app without data; the log has the reason.
                #expect(refused?.end == .broken(ECONNRESET))
                #expect(program.log.contains("nothing listens on port \(local[2])"))
            }
        }

        @Test(arguments: Forwarder.allCases)
        func `a phone that never answers times out for its client and delays no other`(
            forwarder: Forwarder
        ) async throws {
            let rig = try await UsbmuxdFixture([Phones.one, Phones.two], in: scratch)
            let bench = try await ForwarderFixture(forwarder, on: rig, in: scratch)
            let echo = try EchoServer(in: scratch)
            let local = try FreePorts.take(2)
            let programs = [
                try await bench.forward([(local[0], echo.port)], of: Phones.one),
                try await bench.forward([(local[1], echo.port)], of: Phones.two),
            ]
            let (began, isOver) = (Replay<Bool>(), Replay<Bool>())
            async let other = Self.chat(local[0], began, isOver)
            async let same = Self.chat(local[1], began, isOver)
            _ = await began.elements().first { _ in began.soFar.count == 2 }

            try await rig.setOptions(.fault(.silentConnect), of: Phones.two)
            let start = ContinuousClock.now
            let silent = await LoopbackClient.talk(to: local[1], within: .seconds(20)) { peer in
                _ = peer.send(0..<1000)
                return peer.receive()
            }
            let time = ContinuousClock.now - start
            try await rig.setOptions(.usual, of: Phones.two)
            isOver.say(true)

            forwarder.promises(
                "end at a silent phone",
                silent?.count == 0 && silent?.end != .open && time < .seconds(15),
                seen: "\(silent.map { "\($0.end)" } ?? "no listener") after \(time.formatted)"
            )
            let (others, sames) = (await other, await same)
            forwarder.promises(
                "open connections beside it",
                others > 30 && sames > 30,
                seen: "\(others) echoes from the other phone, \(sames) from the same",
                unless: Self.hang
            )
            let echoes = await LoopbackClient.echoes(from: local[1], within: forwarder.timeLimit)
            forwarder.promises("echo once it answers again", echoes, seen: "\(echoes)", unless: Self.hang)
            for program in programs { #expect(program.isRunning) }
        }

        /// Exchanges messages on one connection until `isOver`. Returns the number of echoes, or -1 after a failure.
        private static func chat(_ port: UInt16, _ began: Replay<Bool>, _ isOver: Replay<Bool>) async -> Int {
            await LoopbackClient.talk(to: port, within: .seconds(30)) { peer in
                defer { began.say(false) }
                var rounds = 0
                repeat {
                    let range = rounds * 1000..<(rounds + 1) * 1000
                    _ = peer.send(range)
                    let back = peer.receive(1000, from: range.lowerBound)
                    guard back == PatternPeer.Received(count: 1000) else { return -1 }
                    rounds += 1
                    if rounds == 1 { began.say(true) }
                    usleep(50_000)
                } while isOver.soFar.isEmpty
                return rounds
            } ?? -1
        }

        @Test(arguments: Forwarder.allCases, [(300, 1), (300, 4), (64, 64)])
        func `300 consecutive, 300 in groups of four and 64 concurrent connections all echo`(
            forwarder: Forwarder,
            load: (total: Int, width: Int)
        ) async throws {
            let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
            let bench = try await ForwarderFixture(forwarder, on: rig, in: scratch)
            let echo = try EchoServer(in: scratch)
            let local = try FreePorts.take()
            let program = try await bench.forward([(local[0], echo.port)])

            let start = ContinuousClock.now
            let echoed = await withTaskGroup(of: Int.self) { group in
                for _ in 0..<load.width {
                    group.addTask {
                        var echoed = 0
                        for _ in 0..<load.total / load.width {
                            let isWhole = await LoopbackClient.echoes(from: local[0], within: forwarder.timeLimit)
                            echoed += isWhole ? 1 : 0
                        }
                        return echoed
                    }
                }
                return await group.reduce(0, +)
            }

            forwarder.promises(
                "\(load.total) connections, \(load.width) at a time",
                echoed == load.total,
                seen: "\(load.total - echoed) failed, \((ContinuousClock.now - start).formatted)",
                unless: load.width == 64 ? Self.burst : Self.hang
            )
            #expect(program.isRunning)
        }

        @Test(arguments: Forwarder.allCases)
        func `each of 24 port pairs leads to its own port`(forwarder: Forwarder) async throws {
            let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
            let bench = try await ForwarderFixture(forwarder, on: rig, in: scratch)
            // Each app sends a different part of the pattern.
            let apps = try (0..<24).map { number in
                try LoopbackServer(in: scratch) { socket in
                    let peer = PatternPeer(socket, deadline: .now + .seconds(10))
                    _ = peer.send(number * 1000..<(number + 1) * 1000)
                    _ = peer.receive()
                }
            }
            let local = try FreePorts.take(apps.count)
            let program = try? await bench.forward(zip(local, apps).map { ($0, $1.port) })

            var right = 0
            for (number, port) in local.enumerated() {
                let received = await LoopbackClient.talk(to: port, within: forwarder.timeLimit) { peer in
                    peer.receive(1000, from: number * 1000)
                }
                if received == PatternPeer.Received(count: 1000) { right += 1 }
            }

            forwarder.promises(
                "24 pairs in one command line",
                right == 24 && program?.isRunning == true,
                seen: "\(right) lead to their port, \(program?.isRunning == true ? "it runs" : "it is gone")",
                unless: "its table has 16 rows, and the check comes after the overflow"
            )
        }

        @Test(arguments: Forwarder.allCases)
        func `a reply before an immediate close arrives, or the client gets an error`(
            forwarder: Forwarder
        ) async throws {
            let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
            let bench = try await ForwarderFixture(forwarder, on: rig, in: scratch)
            let app = try LoopbackServer(in: scratch) { socket in
                _ = PatternPeer(socket, deadline: .now + .seconds(10)).send(0..<1000)
            }
            let local = try FreePorts.take()
            let program = try await bench.forward([(local[0], app.port)])

            var (whole, broken) = (0, 0)
            for _ in 0..<100 {
                let received = await LoopbackClient.talk(to: local[0], within: forwarder.timeLimit) { $0.receive() }
                if received == PatternPeer.Received(count: 1000, end: .closed) { whole += 1 }
                if received == PatternPeer.Received(end: .broken(ECONNRESET)) { broken += 1 }
            }

            // usbmuxd itself loses some connections, more under load; Patchbay retries a few times.
            forwarder.promises(
                "100 times an app that closes at once",
                whole + broken == 100 && whole >= 50,
                seen: "\(whole) whole, \(broken) broken, \(100 - whole - broken) ended as if there were no more",
                unless: "what usbmuxd lost looks like an app that had nothing to say"
            )
            #expect(program.isRunning)
        }
    }
}
