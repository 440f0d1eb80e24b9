import Glibc
import Synchronization
import SystemIO
import TestSupport
import Testing

import Tunnels

/// EOF of a stream with a link check, as seen by the client.
@Suite(.timeLimit(.minutes(1)))
struct LinkLossTests {
    /// A link check with a result that the test controls.
    private final class FakeLinkCheck: Sendable {
        private typealias Completion = @Sendable (Bool) -> Void

        private let pending = AsyncStream.makeStream(of: Completion.self)
        private let count = Atomic(0)
        private let immediateResult: Bool?

        /// - Parameter immediateResult: The result to return at once; nil to wait for `complete(isReachable:)`.
        init(_ immediateResult: Bool? = nil) { self.immediateResult = immediateResult }

        var checkCount: Int { count.load(ordering: .relaxed) }

        func check(_ completion: @escaping @Sendable (Bool) -> Void) {
            count.add(1, ordering: .relaxed)
            if let immediateResult { completion(immediateResult) } else { pending.continuation.yield(completion) }
        }

        func complete(isReachable: Bool) async {
            for await completion in pending.stream { return completion(isReachable) }
        }
    }

    private let relay = Relay(idle: .seconds(2))
    private let probe = RelayProbe()

    private func connect(
        _ linkCheck: FakeLinkCheck,
        isUnix: Bool = false,
        through relay: Relay? = nil
    ) async throws -> (client: SocketStream, target: SocketStream) {
        let relay = relay ?? self.relay
        let (client, accepted) = isUnix ? SocketStream.pair() : try await SocketStream.tcpPair()
        let (relayTarget, target) = SocketStream.pair()
        relay.adopt(
            client: accepted.handOver(),
            target: Connection(descriptor: relayTarget.handOver(), halfClose: .destroys, linkCheck: linkCheck.check),
            observer: probe
        )
        return (client, target)
    }

    @Test func `EOF reaches the client if the link still exists`() async throws {
        let (client, target) = try await connect(FakeLinkCheck(true))

        try await target.send(Pattern.bytes(0..<100_000))
        target.finish()

        #expect(try await client.receiveToEnd() == Pattern.bytes(0..<100_000))
        #expect(try await probe.outcome().reason == .finished)
        await relay.stop()
    }

    @Test func `a lost link resets the client after every received byte`() async throws {
        let (client, target) = try await connect(FakeLinkCheck(false))

        try await target.send(Pattern.bytes(0..<100_000))
        target.finish()

        #expect(try await client.receive(100_000) == Pattern.bytes(0..<100_000))
        await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
        #expect(try await probe.outcome().reason == .linkLost)
        await relay.stop()
    }

    @Test func `a stalled client gets every byte before the reset`() async throws {
        let (client, target) = try await connect(FakeLinkCheck(false))
        let bytes = Pattern.bytes(0..<(8 << 20))

        async let sent: Void = {
            try await target.send(bytes)
            target.finish()
        }()
        try await probe.standstill()
        #expect(try await client.receive(bytes.count) == bytes)

        try await sent
        await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
        await relay.stop()
    }

    @Test func `bytes do not wait for the link check, only EOF does`() async throws {
        let linkCheck = FakeLinkCheck()
        // The result may come late on a busy machine, and must not count as a lost link then.
        let relay = Relay(idle: .seconds(2), linkCheckTimeout: .seconds(60))
        let (client, target) = try await connect(linkCheck, through: relay)

        try await target.send(Pattern.bytes(0..<1_000))
        target.finish()
        #expect(try await client.receive(1_000) == Pattern.bytes(0..<1_000))
        let early = try await withTimeout(.milliseconds(100), clock: ContinuousClock()) {
            try await client.receiveSome()
        }
        #expect(early == nil)
        await linkCheck.complete(isReachable: true)

        #expect(try await client.receiveSome().isEmpty)
        #expect(try await probe.outcome().reason == .finished)
        #expect(linkCheck.checkCount == 1)
        await relay.stop()
    }

    @Test func `a half-closed client is reset after a lost link`() async throws {
        let (client, target) = try await connect(FakeLinkCheck(false))

        try await client.send(Array("request".utf8))
        client.finish()
        #expect(try await target.receive(7) == Array("request".utf8))
        try await target.send(Array("rep".utf8))
        target.finish()

        #expect(try await client.receive(3) == Array("rep".utf8))
        await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
        #expect(try await probe.outcome().reason == .linkLost)
        await relay.stop()
    }

    @Test func `a link check without a result counts as a lost link`() async throws {
        let (client, target) = try await connect(FakeLinkCheck())
        let start = MonotonicInstant.now

        target.finish()

        await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
        #expect(MonotonicInstant.now - start < .seconds(2))
        #expect(try await probe.outcome().reason == .linkLost)
        await relay.stop()
    }

    @Test func `a unix socket client sees EOF after every received byte, because it cannot be reset`() async throws {
        let (client, target) = try await connect(FakeLinkCheck(false), isUnix: true)

        try await target.send(Pattern.bytes(0..<100_000))
        target.finish()

        #expect(try await client.receive(100_000) == Pattern.bytes(0..<100_000))
        #expect(try await client.receiveSome().isEmpty)
        #expect(try await probe.outcome().reason == .linkLost)
        await relay.stop()
    }

    @Test func `a unix socket client that is still sending sees a reset`() async throws {
        let (client, target) = try await connect(FakeLinkCheck(false), isUnix: true)
        let sender = client.duplicate()

        async let isBroken = (try? await sender.send(Pattern.bytes(0..<(8 << 20)))) == nil
        try await probe.standstill()
        target.finish()

        #expect(await isBroken)
        await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
        #expect(try await probe.outcome().reason == .linkLost)
        await relay.stop()
    }

    @Test func `no link check runs if the client closes the stream`() async throws {
        let linkCheck = FakeLinkCheck()
        var (client, target): (SocketStream?, SocketStream) = try await connect(linkCheck)

        try await client?.send([1, 2, 3])
        #expect(try await target.receive(3) == [1, 2, 3])
        client = nil

        #expect(try await target.receiveSome().isEmpty)
        #expect(try await probe.outcome().reason == .finished)
        #expect(linkCheck.checkCount == 0)
        await relay.stop()
    }

    @Test func `a late result of a link check is ignored`() async throws {
        let linkCheck = FakeLinkCheck()
        let (client, target) = try await connect(linkCheck)
        target.finish()
        try await eventually("the link is checked") { linkCheck.checkCount == 1 }

        await relay.closeConnections(of: probe)
        let (next, peer) = try await connect(FakeLinkCheck(true))
        await linkCheck.complete(isReachable: false)

        try await peer.send([7])
        #expect(try await next.receive(1) == [7])
        #expect(probe.outcomes.map(\.reason) == [.aborted])
        withExtendedLifetime(client) {}
        await relay.stop()
    }
}
