import Glibc
import TestSupport
import Testing

extension Differential {
    /// Every byte arrives, regardless of stalls and half-closes.
    @Suite(.scratchFolder) struct IntegrityTests {
        private let scratch = ScratchFolder.current

        /// A transfer in one direction whose reader stalls.
        private struct Transfer: Sendable {
            let isUp: Bool
            let seconds: Int

            var name: String { "\(seconds) s stall of the \(isUp ? "app" : "client")" }
            var stall: PatternPeer.Stall { PatternPeer.Stall(after: 1 << 20, for: .seconds(seconds)) }
        }

        private struct Outcome: Sendable {
            var sent = PatternPeer.Sent()
            var received = PatternPeer.Received()

            var text: String {
                let lost = IntegrityTests.size - received.count
                return
                    "\(lost) of \(IntegrityTests.size) bytes missing, \(received.isIntact ? "intact" : "with a hole"), "
                    + "the sender waited \(sent.longestWait.formatted)"
            }
        }

        /// More bytes than all buffers on the path hold, so that the sender must wait for the reader.
        private static let size = 16 << 20
        /// A fixed receive buffer, smaller than the kernel's default.
        private static let window: CInt = 65536

        @Test(arguments: Forwarder.allCases)
        func `a reader that stalls for 3 or 12 s misses no byte in either direction`(
            forwarder: Forwarder
        ) async throws {
            let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
            let bench = try await ForwarderFixture(forwarder, on: rig, in: scratch)
            let transfers = [3, 12].flatMap { [Transfer(isUp: false, seconds: $0), Transfer(isUp: true, seconds: $0)] }
            let local = try FreePorts.take(transfers.count)
            let apps = try transfers.map { try App(for: $0, in: scratch) }
            let program = try await bench.forward(zip(local, apps).map { ($0, $1.port) })

            let outcomes = await withTaskGroup(of: (Int, Outcome).self) { group in
                for (index, transfer) in transfers.enumerated() {
                    let (port, app) = (local[index], apps[index])
                    let limit = Duration.seconds(transfer.seconds) + forwarder.timeLimit * 5
                    group.addTask { (index, await Self.run(transfer, app, port, limit)) }
                }
                return await group.reduce(into: transfers.map { _ in Outcome() }) { $0[$1.0] = $1.1 }
            }

            for (transfer, outcome) in zip(transfers, outcomes) {
                forwarder.promises(
                    transfer.name,
                    outcome.received.count == Self.size && outcome.received.isIntact,
                    seen: outcome.text,
                    unless: "a send that has to wait for 1 s is given up, and the stream goes on without its bytes"
                )
                // Without backpressure the bytes would only fill buffers and nothing would be tested. Uploads may
                // stay in the forwarder's own TCP window (32 MiB since Linux 6.17), which it must not empty faster
                // than the app reads.
                let isHeld = transfer.isUp || outcome.sent.longestWait > .seconds(transfer.seconds) / 2
                #expect(isHeld || forwarder == .iproxy)
            }
            #expect(program.isRunning)
        }

        @Test(arguments: Forwarder.allCases)
        func `a client that half-closes still gets the whole reply`(forwarder: Forwarder) async throws {
            let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
            let bench = try await ForwarderFixture(forwarder, on: rig, in: scratch)
            let app = try LoopbackServer(in: scratch) { socket in
                let peer = PatternPeer(socket, deadline: .now + .seconds(10))
                guard peer.receive(4) == PatternPeer.Received(count: 4) else { return }
                // The client's end of stream arrives long before the reply.
                usleep(300_000)
                _ = peer.send(0..<1 << 20)
            }
            let local = try FreePorts.take()
            _ = try await bench.forward([(local[0], app.port)])

            let reply = await LoopbackClient.talk(to: local[0], within: forwarder.timeLimit * 2) { peer in
                _ = peer.send(0..<4)
                peer.finish()
                return peer.receive()
            }

            forwarder.promises(
                "reply after a half-close",
                reply == PatternPeer.Received(count: 1 << 20, isIntact: true, end: .closed),
                seen: "\(reply?.count ?? 0) of \(1 << 20) bytes",
                unless: "the end of one side ends both"
            )
        }

        /// The app side of one transfer.
        private final class App: Sendable {
            let sent = Replay<PatternPeer.Sent>()
            let received = Replay<PatternPeer.Received>()
            private let server: LoopbackServer

            init(for transfer: Transfer, in scratch: ScratchFolder) throws {
                let (sent, received) = (sent, received)
                server = try LoopbackServer(in: scratch) { socket in
                    let peer = PatternPeer(socket, deadline: .now + .seconds(90))
                    guard transfer.isUp else { return sent.say(peer.send(0..<IntegrityTests.size)) }
                    var window = IntegrityTests.window
                    setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &window, socklen_t(MemoryLayout<CInt>.size))
                    let upload = peer.receive(IntegrityTests.size, stall: transfer.stall)
                    received.say(upload)
                    // Confirms the complete upload to the client, which then closes.
                    if upload.count == IntegrityTests.size { _ = peer.send(0..<1) }
                    _ = peer.receive()
                }
            }

            var port: UInt16 { server.port }
        }

        private static func run(_ transfer: Transfer, _ app: App, _ port: UInt16, _ limit: Duration) async -> Outcome {
            let window = transfer.isUp ? nil : window
            let outcome = await LoopbackClient.talk(to: port, within: limit, receiveBuffer: window) { peer in
                guard transfer.isUp else { return Outcome(received: peer.receive(stall: transfer.stall)) }
                let sent = peer.send(0..<size)
                _ = peer.receive(1)
                return Outcome(sent: sent)
            }
            guard var outcome else { return Outcome() }
            // If the app was reached, it reports as soon as the client has closed.
            if transfer.isUp {
                outcome.received = await app.received.first(within: .seconds(5)) ?? outcome.received
            } else {
                outcome.sent = await app.sent.first(within: .seconds(5)) ?? outcome.sent
            }
            return outcome
        }
    }
}
