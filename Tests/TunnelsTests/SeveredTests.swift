import Glibc
import SystemIO
import Synchronization
import Testing

import Tunnels

/// What a client sees of a stream's end, when somebody can say whether it was one.
@Suite(.timeLimit(.minutes(1)))
struct SeveredTests {
    /// Says what the test wants it to say, when the test wants it.
    private final class Witness: LinkChecker {
        private typealias Answer = @Sendable (Bool) -> Void

        private let asked = AsyncStream.makeStream(of: Answer.self)
        private let count = Atomic(0)
        private let prompt: Bool?

        /// - Parameter prompt: What to say at once; nil to wait for the test.
        init(_ prompt: Bool? = nil) { self.prompt = prompt }

        var timesAsked: Int { count.load(ordering: .relaxed) }

        func ask(_ answer: @escaping @Sendable (Bool) -> Void) {
            count.add(1, ordering: .relaxed)
            if let prompt { answer(prompt) } else { asked.continuation.yield(answer) }
        }

        func say(_ isWayThere: Bool) async {
            for await answer in asked.stream { return answer(isWayThere) }
        }
    }

    private let relay = Relay(idle: .seconds(2))
    private let probe = RelayProbe()

    private func connect(_ witness: Witness, isUnix: Bool = false) async throws -> (client: Stream, target: Stream) {
        let (client, accepted) = isUnix ? Stream.pair() : try await Stream.tcpPair()
        let (carrier, target) = Stream.pair()
        relay.adopt(
            client: accepted.handOver(),
            carrier: Connection(descriptor: carrier.handOver(), halfClose: .destroys).witnessed(by: witness),
            observer: probe
        )
        return (client, target)
    }

    @Test func `a stream whose way is still there ends as its target ended it`() async throws {
        let (client, target) = try await connect(Witness(true))

        try await target.send(pattern(100_000))
        target.finish()

        #expect(try await client.receiveToEnd() == pattern(100_000))
        #expect(try await probe.outcome()?.reason == .finished)
        await relay.stop()
    }

    @Test func `a stream whose way is gone ends with a reset, after everything that came`() async throws {
        let (client, target) = try await connect(Witness(false))

        try await target.send(pattern(100_000))
        target.finish()

        #expect(try await client.receive(100_000) == pattern(100_000))
        await #expect(throws: Stream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
        #expect(try await probe.outcome()?.reason == .severed)
        await relay.stop()
    }

    @Test func `a client that stalls gets every byte before the reset`() async throws {
        let (client, target) = try await connect(Witness(false))
        let bytes = pattern(8 << 20)

        async let sent: Void = {
            try await target.send(bytes)
            target.finish()
        }()
        try await probe.standstill()
        #expect(try await client.receive(bytes.count) == bytes)

        try await sent
        await #expect(throws: Stream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
        await relay.stop()
    }

    @Test func `bytes do not wait for the witness, only the end does`() async throws {
        let witness = Witness()
        let (client, target) = try await connect(witness)

        try await target.send(pattern(1_000))
        target.finish()
        #expect(try await client.receive(1_000) == pattern(1_000))
        let early = try await withDeadline(.milliseconds(100), clock: ContinuousClock()) {
            try await client.receiveSome()
        }
        #expect(early == nil)
        await witness.say(true)

        #expect(try await client.receiveSome().isEmpty)
        #expect(try await probe.outcome()?.reason == .finished)
        #expect(witness.timesAsked == 1)
        await relay.stop()
    }

    @Test func `a client that has ended its side learns of a cut, too`() async throws {
        let (client, target) = try await connect(Witness(false))

        try await client.send(Array("request".utf8))
        client.finish()
        #expect(try await target.receive(7) == Array("request".utf8))
        try await target.send(Array("rep".utf8))
        target.finish()

        #expect(try await client.receive(3) == Array("rep".utf8))
        await #expect(throws: Stream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
        #expect(try await probe.outcome()?.reason == .severed)
        await relay.stop()
    }

    @Test func `a witness that never answers is as good as a cut`() async throws {
        let (client, target) = try await connect(Witness())
        let start = ContinuousClock.now

        target.finish()

        await #expect(throws: Stream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
        #expect(ContinuousClock.now - start < .seconds(2))
        #expect(try await probe.outcome()?.reason == .severed)
        await relay.stop()
    }

    @Test func `a client at a unix socket, which cannot be reset, sees an end after everything that came`() async throws
    {
        let (client, target) = try await connect(Witness(false), isUnix: true)

        try await target.send(pattern(100_000))
        target.finish()

        #expect(try await client.receive(100_000) == pattern(100_000))
        #expect(try await client.receiveSome().isEmpty)
        #expect(try await probe.outcome()?.reason == .severed)
        await relay.stop()
    }

    @Test func `a client at a unix socket that is still sending sees a reset`() async throws {
        let (client, target) = try await connect(Witness(false), isUnix: true)
        let sender = client.duplicate()

        async let isBroken = (try? await sender.send(pattern(8 << 20))) == nil
        try await probe.standstill()
        target.finish()

        #expect(await isBroken)
        await #expect(throws: Stream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
        #expect(try await probe.outcome()?.reason == .severed)
        await relay.stop()
    }

    @Test func `nobody is asked about a stream that its client ends`() async throws {
        let witness = Witness()
        var (client, target): (Stream?, Stream) = try await connect(witness)

        try await client?.send([1, 2, 3])
        #expect(try await target.receive(3) == [1, 2, 3])
        client = nil

        #expect(try await target.receiveSome().isEmpty)
        #expect(try await probe.outcome()?.reason == .finished)
        #expect(witness.timesAsked == 0)
        await relay.stop()
    }

    @Test func `an answer that comes too late is for nobody`() async throws {
        let witness = Witness()
        let (client, target) = try await connect(witness)
        target.finish()
        #expect(try await eventually { witness.timesAsked == 1 })

        await relay.cut(probe)
        let (next, peer) = try await connect(Witness(true))
        await witness.say(false)

        try await peer.send([7])
        #expect(try await next.receive(1) == [7])
        #expect(probe.outcomes.map(\.reason) == [.cut])
        withExtendedLifetime(client) {}
        await relay.stop()
    }
}
