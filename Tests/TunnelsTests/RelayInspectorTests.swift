import Glibc
import SystemIO
import Testing
import Tunnels

/// The guard goes on in the relay for clients that are silent at first.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct RelayInspectorTests {
    private let relay = Relay(idle: .milliseconds(150))
    private let probe = RelayProbe()
    private let limits = InspectionTimeouts(head: .milliseconds(300), farewell: .milliseconds(200))

    private func connect(
        _ halfClose: Connection.HalfClose = .propagates,
        early: [UInt8] = []
    ) async throws -> (client: Stream, target: Stream) {
        let (client, accepted) = try await Stream.tcpPair()
        let (carrier, target) = Stream.pair()
        relay.adopt(
            client: accepted.handOver(),
            carrier: Connection(descriptor: carrier.handOver(), halfClose: halfClose, early: early),
            screen: RelayInspector(BrowserGuard(address: nil), limits: limits),
            observer: probe
        )
        return (client, target)
    }

    private let good = Array("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc".utf8)
    private let evil = Array("POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 3\r\n\r\nabc".utf8)

    @Test(arguments: [Connection.HalfClose.propagates, .destroys])
    func `a late request of a page is refused, and its target sees no byte of it`(halfClose: Connection.HalfClose)
        async throws
    {
        let (client, target) = try await connect(halfClose)

        try await client.send(evil)

        let answer = String(decoding: try await client.receiveToEnd(), as: UTF8.self)
        #expect(answer.hasPrefix("HTTP/1.1 403 ") && answer.contains("--allow-browsers"))
        #expect(try await probe.outcome()?.reason == .refused(.foreignHost))
        #expect(try await target.receiveToEnd().isEmpty)
        #expect(probe.up == 0)
        await relay.stop()
    }

    @Test(arguments: [Connection.HalfClose.propagates, .destroys])
    func `a late request of a program passes whole, and so does everything after it`(halfClose: Connection.HalfClose)
        async throws
    {
        let (client, target) = try await connect(halfClose)
        let rest = pattern(300_000)

        try await client.send(good)
        #expect(try await target.receive(good.count) == good)
        try await client.send(evil + rest)
        #expect(try await target.receive(evil.count + rest.count) == evil + rest)

        try await target.send([7])
        #expect(try await client.receive(1) == [7])
        await relay.stop()
    }

    @Test func `a request that comes a byte at a time is judged as one that comes at once`() async throws {
        for (head, passes) in [(good, true), (evil, false)] {
            let (client, target) = try await connect()
            var received: [UInt8] = []
            for byte in head {
                try? await client.send([byte])
                for _ in 0..<5 { await Task.yield() }
            }
            client.finish()
            received = try await target.receiveToEnd()
            #expect(received == (passes ? head : []))
        }
        await relay.stop()
    }

    @Test func `a target that speaks first is heard at once, and its client is no longer held up`() async throws {
        let (client, target) = try await connect()

        try await target.send(Array("SSH-2.0-x\r\n".utf8))
        #expect(try await client.receive(11).count == 11)
        // Only where nothing is expected of HTTP this passes without another byte.
        try await client.send(Array("GET / HTTP/1.1\r\nOrigin: ".utf8))

        #expect(try await target.receive(24).count == 24)
        await relay.stop()
    }

    @Test func `a target that speaks first before it is handed over holds nobody up either`() async throws {
        let (client, target) = try await connect(early: Array("220 hello".utf8))

        try await client.send(Array("GET ".utf8))

        #expect(try await target.receive(4).count == 4)
        await relay.stop()
    }

    @Test func `an answer of HTTP before the request does not lift the guard`() async throws {
        let (client, target) = try await connect()

        try await target.send(Array("HTTP/1.1 408 Request Timeout\r\n\r\n".utf8))
        #expect(try await client.receive(32).count == 32)
        try await client.send(evil)

        #expect(try await probe.outcome()?.reason == .refused(.foreignHost))
        #expect(try await target.receiveToEnd().isEmpty)
        await relay.stop()
    }

    @Test func `a word that may be anything is held up for a moment only`() async throws {
        let (client, target) = try await connect()

        try await client.send(Array("JDWP-Handshake".utf8))

        #expect(try await target.receive(14) == Array("JDWP-Handshake".utf8))
        await relay.stop()
    }

    @Test(arguments: ["", "foo ", "GET ", "\n"])
    func `16 KiB that are not HTTP reach the target, and their client gets no answer from the broker`(start: String)
        async throws
    {
        let (client, target) = try await connect()
        let bytes = Array(start.utf8) + Array(repeating: UInt8(ascii: "Q"), count: 40_000)

        try await client.send(bytes)
        #expect(try await target.receive(bytes.count) == bytes)
        try await target.send([7])
        target.finish()

        #expect(try await client.receiveToEnd() == [7])
        await relay.stop()
    }

    @Test func `a method without a path that stays unfinished reaches the target`() async throws {
        let (client, target) = try await connect()

        try await client.send(Array("GET key".utf8))

        #expect(try await target.receive(7) == Array("GET key".utf8))
        await relay.stop()
    }

    @Test func `a request whose head does not become whole is refused`() async throws {
        let (client, target) = try await connect()

        try await client.send(Array("GET / HTTP/1.1\r\nHost: localhost\r\n".utf8))

        #expect(String(decoding: try await client.receiveToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 403 "))
        #expect(try await target.receiveToEnd().isEmpty)
        await relay.stop()
    }

    @Test func `a silent client may end its side and still gets the answer`() async throws {
        let (client, target) = try await connect()

        client.finish()
        #expect(try await target.receiveToEnd().isEmpty)
        try await target.send(pattern(100_000))
        target.finish()

        #expect(try await client.receiveToEnd() == pattern(100_000))
        #expect(try await probe.outcome()?.reason == .finished)
        await relay.stop()
    }

    @Test func `a short message and the end come through together`() async throws {
        let (client, target) = try await connect()

        try await client.send(Array("hello".utf8))
        client.finish()

        #expect(try await target.receiveToEnd() == Array("hello".utf8))
        await relay.stop()
    }

    @Test func `a client that breaks off before it said anything ends the connection`() async throws {
        var (client, target): (Stream?, Stream) = try await connect()

        client?.makeAbortive()
        client = nil

        #expect(try await target.receiveToEnd().isEmpty)
        _ = try #require(try await probe.outcome())
        await relay.stop()
        _ = client
    }
}
