import Glibc
import SystemIO
import TestSupport
import Testing
import Tunnels

/// The browser guard in the relay, for clients that are silent at first.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct RelayInspectorTests {
    private let relay = Relay(idle: .milliseconds(150))
    private let probe = RelayProbe()
    private let limits = InspectionTimeouts(head: .milliseconds(300), drain: .milliseconds(200))

    private func connect(
        _ halfClose: Connection.HalfClose = .propagates
    ) async throws -> (client: SocketStream, target: SocketStream) {
        let (client, accepted) = try await SocketStream.tcpPair()
        let (relayTarget, target) = SocketStream.pair()
        relay.adopt(
            client: accepted.handOver(),
            target: Connection(descriptor: relayTarget.handOver(), halfClose: halfClose),
            inspector: RelayInspector(BrowserGuard(address: nil), limits: limits),
            observer: probe
        )
        return (client, target)
    }

    private let good = Array("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc".utf8)
    private let evil = Array("POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 3\r\n\r\nabc".utf8)

    @Test(arguments: [Connection.HalfClose.propagates, .destroys])
    func `a late browser request is rejected, and the target receives no byte`(halfClose: Connection.HalfClose)
        async throws
    {
        let (client, target) = try await connect(halfClose)

        try await client.send(evil)

        let answer = String(decoding: try await client.receiveToEnd(), as: UTF8.self)
        #expect(answer.hasPrefix("HTTP/1.1 403 ") && answer.contains("--allow-browsers"))
        #expect(try await probe.outcome().reason == .refused(.foreignHost))
        #expect(try await target.receiveToEnd().isEmpty)
        #expect(probe.up == 0)
        await relay.stop()
    }

    @Test(arguments: [Connection.HalfClose.propagates, .destroys])
    func `a late request without browser headers passes completely, with all later bytes`(
        halfClose: Connection.HalfClose
    )
        async throws
    {
        let (client, target) = try await connect(halfClose)
        let rest = Pattern.bytes(0..<300_000)

        try await client.send(good)
        #expect(try await target.receive(good.count) == good)
        try await client.send(evil + rest)
        #expect(try await target.receive(evil.count + rest.count) == evil + rest)

        try await target.send([7])
        #expect(try await client.receive(1) == [7])
        await relay.stop()
    }

    @Test func `a request sent byte by byte gets the same decision as a complete one`() async throws {
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

    @Test func `a target that speaks first is relayed at once, and its client is not delayed any more`() async throws {
        let (client, target) = try await connect()

        try await target.send(Array("SSH-2.0-x\r\n".utf8))
        #expect(try await client.receive(11).count == 11)
        // This incomplete request passes only if the inspection has ended.
        try await client.send(Array("GET / HTTP/1.1\r\nOrigin: ".utf8))

        #expect(try await target.receive(24).count == 24)
        await relay.stop()
    }

    @Test func `an HTTP response before the request does not end the inspection`() async throws {
        let (client, target) = try await connect()

        try await target.send(Array("HTTP/1.1 408 Request Timeout\r\n\r\n".utf8))
        #expect(try await client.receive(32).count == 32)
        try await client.send(evil)

        #expect(try await probe.outcome().reason == .refused(.foreignHost))
        #expect(try await target.receiveToEnd().isEmpty)
        await relay.stop()
    }

    @Test func `a word that is not HTTP is delayed only briefly`() async throws {
        let (client, target) = try await connect()

        try await client.send(Array("JDWP-Handshake".utf8))

        #expect(try await target.receive(14) == Array("JDWP-Handshake".utf8))
        await relay.stop()
    }

    @Test(arguments: ["", "foo ", "GET ", "\n"])
    func `16 KiB of non-HTTP data reach the target, and the client gets no response from the broker`(start: String)
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

    @Test func `an incomplete request line without a path reaches the target`() async throws {
        let (client, target) = try await connect()

        try await client.send(Array("GET key".utf8))

        #expect(try await target.receive(7) == Array("GET key".utf8))
        await relay.stop()
    }

    @Test func `a request with an incomplete head is rejected`() async throws {
        let (client, target) = try await connect()

        try await client.send(Array("GET / HTTP/1.1\r\nHost: localhost\r\n".utf8))

        #expect(String(decoding: try await client.receiveToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 403 "))
        #expect(try await target.receiveToEnd().isEmpty)
        await relay.stop()
    }

    @Test func `a silent client may half-close and still gets the response`() async throws {
        let (client, target) = try await connect()

        client.finish()
        #expect(try await target.receiveToEnd().isEmpty)
        try await target.send(Pattern.bytes(0..<100_000))
        target.finish()

        #expect(try await client.receiveToEnd() == Pattern.bytes(0..<100_000))
        #expect(try await probe.outcome().reason == .finished)
        await relay.stop()
    }

    @Test func `a short message and EOF reach the target together`() async throws {
        let (client, target) = try await connect()

        try await client.send(Array("hello".utf8))
        client.finish()

        #expect(try await target.receiveToEnd() == Array("hello".utf8))
        await relay.stop()
    }

    @Test func `a client that resets before its first byte ends the connection`() async throws {
        var (client, target): (SocketStream?, SocketStream) = try await connect()

        client?.makeAbortive()
        client = nil

        #expect(try await target.receiveToEnd().isEmpty)
        _ = try await probe.outcome()
        await relay.stop()
        _ = client
    }
}
