import TestSupport
import Testing

@Suite(.scratchFolder) struct PatternPeerTests {
    private let scratch = ScratchFolder.current

    @Test func `a gap in the stream is detected with its size`() async throws {
        let app = try LoopbackServer(in: scratch) { socket in
            let peer = PatternPeer(socket, deadline: .now + .seconds(5))
            _ = peer.send(0..<100_000)
            _ = peer.send(132_768..<200_000)
        }

        let received = await LoopbackClient.talk(to: app.port, within: .seconds(5)) { $0.receive() }

        #expect(received == PatternPeer.Received(count: 167_232, isIntact: false, end: .closed))
    }

    @Test func `a stalled reader makes the sender wait, and a missing end runs into the deadline`() async throws {
        let sent = Replay<PatternPeer.Sent>()
        let app = try LoopbackServer(in: scratch) { socket in
            let peer = PatternPeer(socket, deadline: .now + .seconds(5))
            sent.say(peer.send(0..<16 << 20))
            _ = peer.receive()
        }

        let stall = PatternPeer.Stall(after: 1000, for: .milliseconds(500))
        let received = await LoopbackClient.talk(to: app.port, within: .seconds(3), receiveBuffer: 65536) { peer in
            peer.receive(stall: stall)
        }

        #expect(received == PatternPeer.Received(count: 16 << 20, isIntact: true, end: .open))
        #expect(try #require(sent.soFar.first).longestWait > .milliseconds(300))
    }

    @Test func `a free port has no listener`() async throws {
        let ports = try FreePorts.take(3)

        #expect(Set(ports).count == 3)
        for port in ports { #expect(await LoopbackClient.talk(to: port, within: .seconds(1)) { _ in true } == nil) }
    }
}
