import Glibc
import TestSupport
import Testing

extension Differential {
    /// Outages of a phone or of usbmuxd.
    @Suite(.scratchFolder) struct InterruptionTests {
        private let scratch = ScratchFolder.current

        @Test(arguments: Forwarder.allCases, Outage.allCases)
        func `an outage ends the open stream, and the same port works again afterwards`(
            forwarder: Forwarder,
            outage: Outage
        ) async throws {
            let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
            let bench = try await ForwarderFixture(forwarder, on: rig, in: scratch)
            let size = 256 << 20
            let app = try LoopbackServer(in: scratch) { socket in
                _ = PatternPeer(socket, deadline: .now + .seconds(30)).send(0..<size)
            }
            let local = try FreePorts.take()
            let program = try await bench.forward([(local[0], app.port)])
            let began = Replay<Bool>()
            async let stream = LoopbackClient.talk(to: local[0], within: .seconds(10)) { peer in
                let first = peer.receive(1 << 20)
                began.say(true)
                return (first, peer.receive(from: first.count))
            }
            _ = await began.elements().first { _ in true }

            let start = ContinuousClock.now
            try await outage.begin(on: rig)
            let (first, rest) = try #require(await stream)
            let time = ContinuousClock.now - start

            forwarder.promises(
                "end of a stream, \(outage.rawValue)",
                first == PatternPeer.Received(count: 1 << 20) && rest.isIntact && rest.end != .open
                    && first.count + rest.count < size && time < .seconds(3),
                seen: "\(rest.end) after \(first.count + rest.count) bytes and \(time.formatted)"
            )
            forwarder.promises(
                "a stream that was cut looks cut, \(outage.rawValue)",
                rest.end == .broken(ECONNRESET),
                seen: "\(rest.end)",
                unless: "every end of the device's stream is a close to the client"
            )
            try await outage.end(on: rig)
            let mended = ContinuousClock.now
            let isBack: Void? = try? await eventually("the same port works") {
                let received = await LoopbackClient.talk(to: local[0], within: .seconds(2)) { $0.receive(1 << 20) }
                return received == PatternPeer.Received(count: 1 << 20)
            }
            forwarder.promises(
                "same port afterwards, \(outage.rawValue)",
                isBack != nil && program.isRunning,
                seen: isBack == nil ? "dead" : "works after \((ContinuousClock.now - mended).formatted)"
            )
        }
    }
}
