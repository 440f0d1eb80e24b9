import Glibc
import Synchronization
import SystemIO
import TestSupport
import Testing
import Tunnels

@Suite(.serialized, .timeLimit(.minutes(2)))
struct RelayTests {
    private let relay = Relay(idle: .milliseconds(150))
    private let probe = RelayProbe()
    private let size = 8 << 20

    /// The socket types of the two sides.
    enum Sides: CaseIterable {
        case tcpToUnix
        case tcpToTCP
        case unixToUnix
    }

    /// Connects a client and a target through the relay.
    private func connect(
        _ sides: Sides = .tcpToUnix,
        _ halfClose: Connection.HalfClose = .propagates,
        through other: Relay? = nil
    ) async throws -> (client: SocketStream, target: SocketStream) {
        let (client, accepted) = sides == .unixToUnix ? SocketStream.pair() : try await SocketStream.tcpPair()
        let (relayTarget, target) = sides == .tcpToTCP ? try await SocketStream.tcpPair() : SocketStream.pair()
        (other ?? relay).adopt(
            client: accepted.handOver(),
            target: Connection(descriptor: relayTarget.handOver(), halfClose: halfClose),
            observer: probe
        )
        return (client, target)
    }

    @Test(arguments: Sides.allCases)
    func `every byte arrives in order, in both directions at once`(_ sides: Sides) async throws {
        let (client, target) = try await connect(sides)
        let (up, down) = (Pattern.bytes(0..<size), Pattern.bytes(size..<2 * size))
        let (clientWriter, targetWriter) = (client.duplicate(), target.duplicate())

        async let sentUp: Void = clientWriter.send(up)
        async let sentDown: Void = targetWriter.send(down)
        async let gotUp = target.receive(size)
        async let gotDown = client.receive(size)

        try await sentUp
        try await sentDown
        #expect(try await gotUp == up)
        #expect(try await gotDown == down)
        try await eventually("every byte is counted") { probe.up == size && probe.down == size }
        await relay.stop()
    }

    @Test(arguments: Sides.allCases, [Connection.HalfClose.propagates, .destroys])
    func `a stalled client loses no bytes, even if the target has closed`(
        _ sides: Sides,
        _ halfClose: Connection.HalfClose
    ) async throws {
        var (client, target): (SocketStream, SocketStream?) = try await connect(sides, halfClose)
        let bytes = Pattern.bytes(0..<2 * size)
        let writer = target?.duplicate()
        target = nil

        async let sent: Void = Self.sendAndClose(bytes, writer)
        try await probe.standstill()
        #expect(probe.outcomes.isEmpty)
        // The client starts to read only now, and stalls once more in between.
        let first = try await client.receive(size)
        try await probe.standstill()
        let rest = try await client.receiveToEnd()

        try await sent
        #expect(first + rest == bytes)
        client = SocketStream.pair().0
        #expect(try await probe.outcome().bytesDown == UInt64(bytes.count))
        await relay.stop()
    }

    private static func sendAndClose(_ bytes: [UInt8], _ stream: SocketStream?) async throws {
        try await stream?.send(bytes)
        stream?.finish()
    }

    @Test(arguments: Sides.allCases, [Connection.HalfClose.propagates, .destroys])
    func `a stalled target loses no bytes, even if the client has closed`(
        _ sides: Sides,
        _ halfClose: Connection.HalfClose
    ) async throws {
        var (client, target): (SocketStream?, SocketStream) = try await connect(sides, halfClose)
        let bytes = Pattern.bytes(0..<2 * size)
        let writer = client?.duplicate()
        client = nil

        async let sent: Void = Self.sendAndClose(bytes, writer)
        try await probe.standstill()
        #expect(probe.outcomes.isEmpty)
        let received = try await target.receive(bytes.count)

        try await sent
        #expect(received == bytes)
        #expect(try await target.receiveSome().isEmpty)
        target = SocketStream.pair().0
        #expect(try await probe.outcome().bytesUp == UInt64(bytes.count))
        await relay.stop()
    }

    @Test(arguments: Sides.allCases)
    func `a half-close reaches the target, and the response reaches the client`(_ sides: Sides) async throws {
        let (client, target) = try await connect(sides)

        try await client.send(Array("request".utf8))
        client.finish()
        #expect(try await target.receiveToEnd() == Array("request".utf8))
        try await target.send(Array("reply".utf8))
        target.finish()

        #expect(try await client.receiveToEnd() == Array("reply".utf8))
        #expect(try await probe.outcome().reason == .finished)
        await relay.stop()
    }

    @Test func `the client's EOF is not forwarded to a device, which can still respond`() async throws {
        let patient = Relay(idle: .seconds(2))
        let (client, target) = try await connect(.tcpToUnix, .destroys, through: patient)

        try await client.send(Array("request".utf8))
        client.finish()
        #expect(try await target.receive(7) == Array("request".utf8))
        let end = try await withTimeout(.milliseconds(300), clock: ContinuousClock()) { try await target.receiveSome() }
        #expect(end == nil)
        try await target.send(Array("reply".utf8))

        #expect(try await client.receiveToEnd() == Array("reply".utf8))
        #expect(try await probe.outcome().reason == .drained)
        #expect(try await target.receiveSome().isEmpty)
        await patient.stop()
        await relay.stop()
    }

    @Test func `EOF of a device closes the client immediately after the last byte`() async throws {
        let (client, target) = try await connect(.tcpToUnix, .destroys)

        try await Self.sendAndClose(Pattern.bytes(0..<100_000), target)

        #expect(try await client.receiveToEnd() == Pattern.bytes(0..<100_000))
        #expect(try await probe.outcome().reason == .finished)
        await relay.stop()
    }

    @Test func `a target reset reaches the client after every byte sent before`() async throws {
        var (client, target): (SocketStream, SocketStream?) = try await connect(.tcpToTCP)

        try await target?.send(Pattern.bytes(0..<10_000))
        try await eventually("the bytes are relayed") { probe.down == 10_000 }
        target?.makeAbortive()
        target = nil

        #expect(try await probe.outcome().reason == .targetFailed(ECONNRESET))
        #expect(try await client.receive(10_000) == Pattern.bytes(0..<10_000))
        await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
        await relay.stop()
    }

    @Test func `a device that closes with unread bytes is reported as a failure`() async throws {
        var (client, target): (SocketStream, SocketStream?) = try await connect(.tcpToUnix, .destroys)
        let writer = client.duplicate()

        let sending = Task { try await writer.send(Pattern.bytes(0..<(2 << 23))) }
        try await probe.standstill()
        target = nil

        guard case .targetFailed = try await probe.outcome().reason else {
            Issue.record("the outcome is \(probe.outcomes)")
            return
        }
        await #expect(throws: SocketStream.Failure.self) { try await sending.value }
        _ = target
        await relay.stop()
    }

    @Test func `a client reset resets the target`() async throws {
        var (client, target): (SocketStream?, SocketStream) = try await connect(.tcpToTCP)

        try await client?.send(Pattern.bytes(0..<10_000))
        #expect(try await target.receive(10_000) == Pattern.bytes(0..<10_000))
        client?.makeAbortive()
        client = nil

        await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await target.receiveSome() }
        #expect(try await probe.outcome().reason == .clientFailed(ECONNRESET))
        await relay.stop()
    }

    @Test func `the stream of a stalled target closes after a client reset`() async throws {
        var (client, target): (SocketStream?, SocketStream) = try await connect(.tcpToUnix, .destroys)
        do {
            let writer = client?.duplicate()
            async let sent: Void = Self.sendAndClose(Pattern.bytes(0..<(1 << 20)), writer)
            try await probe.standstill()
            try await sent
        }

        client?.makeAbortive()
        client = nil

        // EPIPE if the client's EOF arrived before the reset, otherwise ECONNRESET.
        let reason = try await probe.outcome().reason
        #expect([.clientFailed(ECONNRESET), .clientFailed(EPIPE)].contains(reason))
        withExtendedLifetime(target) {}
        await relay.stop()
    }

    @Test func `the bytes of a unix client that writes and closes at once are delivered completely`() async throws {
        var (client, target): (SocketStream?, SocketStream) = try await connect(.unixToUnix, .destroys)

        try await client?.send(Pattern.bytes(0..<150_000))
        client = nil
        try await target.send(Array("nobody reads this".utf8))

        #expect(try await target.receiveToEnd() == Pattern.bytes(0..<150_000))
        _ = try await probe.outcome()
        await relay.stop()
    }

    @Test(arguments: [Sides.unixToUnix, .tcpToUnix])
    func `a disconnected client releases the device, even one that keeps sending`(sides: Sides) async throws {
        let patient = Relay(idle: .seconds(30))
        var (client, target): (SocketStream?, SocketStream) = try await connect(sides, .destroys, through: patient)
        try await client?.send(Pattern.bytes(0..<150_000))
        client = nil
        #expect(try await target.receive(150_000) == Pattern.bytes(0..<150_000))

        let start = ContinuousClock.now
        async let talk: Void = Self.talk(target.duplicate())

        #expect(try await probe.outcome().reason == .finished)
        #expect(ContinuousClock.now - start < .seconds(2))
        await talk
        await patient.stop()
    }

    /// Sends a byte every 10 ms until the send fails, for at most 5 s.
    private static func talk(_ stream: SocketStream) async {
        for _ in 0..<500 {
            // The pause comes first, so that the relay can detect the client's disconnect.
            guard (try? await Task.sleep(for: .milliseconds(10))) != nil, (try? await stream.send([1])) != nil else {
                return
            }
        }
    }

    @Test func `an urgent byte keeps its place in the stream`() async throws {
        let (client, target) = try await connect()

        try await client.send(Array("ab".utf8))
        #expect(Glibc.send(client.number, "!", 1, CInt(MSG_OOB)) == 1)
        try await client.send(Array("cd".utf8))

        #expect(try await target.receive(5) == Array("ab!cd".utf8))
        await relay.stop()
    }

    @Test func `an urgent byte keeps its place in a large stream`() async throws {
        let (client, target) = try await connect()
        let (first, last) = (Pattern.bytes(0..<size), Pattern.bytes(size..<2 * size))
        let writer = client.duplicate()

        async let sent: Void = {
            try await writer.send(first)
            // While the queue is full, an urgent byte is rejected as a whole.
            while Glibc.send(writer.number, "!", 1, CInt(MSG_OOB)) != 1 { try await Task.sleep(for: .milliseconds(1)) }
            try await writer.send(last)
        }()

        #expect(try await target.receive(2 * size + 1) == first + Array("!".utf8) + last)
        try await sent
        await relay.stop()
    }

    @Test func `a target that closes during a large transfer stops neither the relay nor the process`() async throws {
        let bytes = Pattern.bytes(0..<4 * size)
        for _ in 0..<5 {
            var (client, target): (SocketStream, SocketStream?) = try await connect()
            let writer = client.duplicate()
            let sending = Task { try await writer.send(bytes) }
            _ = try await target?.receive(1 << 20)
            target = nil
            await #expect(throws: SocketStream.Failure.self) { try await sending.value }
            client = SocketStream.pair().0
        }
        try await eventually("every relay has ended") { probe.outcomes.count == 5 }
        await relay.stop()
    }

    @Test func `closing connections returns after the last byte`() async throws {
        let (client, target) = try await connect()
        let other = RelayProbe()
        let (otherClient, otherAccepted) = SocketStream.pair()
        let (otherRelayTarget, otherTarget) = SocketStream.pair()
        relay.adopt(
            client: otherAccepted.handOver(),
            target: Connection(descriptor: otherRelayTarget.handOver(), halfClose: .propagates),
            observer: other
        )
        async let flood: Void = Self.flood(target.duplicate())
        _ = try await client.receive(size)

        await relay.closeConnections(of: probe)
        let moved = probe.down
        #expect(probe.outcomes.map(\.reason) == [.aborted])
        try? await flood

        #expect(probe.down == moved)
        // The connection of another observer stays open.
        try await otherClient.send([1, 2, 3])
        #expect(try await otherTarget.receive(3) == [1, 2, 3])
        await relay.stop()
        #expect(other.outcomes.map(\.reason) == [.aborted])
    }

    private static func flood(_ stream: SocketStream) async throws {
        while true { try await stream.send(Pattern.bytes(0..<65_536)) }
    }

    @Test func `a permit is released after the target socket is closed`() async throws {
        final class Permit: Sendable {
            let isBack: Atomic<Bool>
            let check: @Sendable () -> Void
            init(_ check: @escaping @Sendable () -> Void) {
                isBack = Atomic(false)
                self.check = check
            }
            deinit { check() }
        }
        let seen = Mutex<Bool?>(nil)
        let (client, accepted) = SocketStream.pair()
        var pair: (SocketStream, SocketStream)? = SocketStream.pair()
        let targetNumber = pair?.1.duplicate()
        let descriptor = pair?.0.handOver() ?? Descriptor(owning: -1)
        pair = nil
        relay.adopt(
            client: accepted.handOver(),
            target: Connection(
                descriptor: descriptor,
                halfClose: .destroys,
                permit: Permit { [number = targetNumber?.number ?? -1] in
                    // EOF means that the peer is closed.
                    var byte: UInt8 = 0
                    let isClosed = recv(number, &byte, 1, 0) == 0
                    seen.withLock { $0 = isClosed }
                }
            ),
            observer: probe
        )

        await relay.closeConnections(of: probe)

        #expect(seen.withLock { $0 } == true)
        withExtendedLifetime((client, targetNumber)) {}
        await relay.stop()
    }

    @Test func `a connection adopted after the stop is closed and reported`() async throws {
        await relay.stop()

        let (client, _) = try await connect(.unixToUnix)

        #expect(probe.outcomes.map(\.reason) == [.aborted])
        #expect(try await client.receiveSome().isEmpty)
    }
}
