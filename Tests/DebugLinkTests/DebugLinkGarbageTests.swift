import SystemIO
import TestSupport
import Testing

@testable import DebugLink

/// Clients that do not speak the protocol. `DebugFrameDecoderTests` has the errors of single frames.
@Suite(.timeLimit(.minutes(1))) struct DebugLinkGarbageTests {
    /// Sends bytes again and again until the server ends the connection, at most 1 GB.
    private static func flood(_ address: SocketAddress, begin: [UInt8], chunk: [UInt8]) async throws -> Int {
        let stream = try await SocketStream.connect(to: address)
        var sent = begin.count
        do {
            try await stream.send(begin)
            while sent < 1_000_000_000 {
                try await stream.send(chunk)
                sent += chunk.count
            }
        } catch is SocketStream.Failure {}
        return sent
    }

    @Test func `garbage ends its own connection with a named error and no other`() async throws {
        var limits = DebugLinkLimits()
        limits.frame = 1_000_000
        try await DebugLinkFixture.running(limits: limits) { server in
            var changes = await Changes(of: server)
            let app = try await FakeApp.connect(to: server, &changes)
            var random = SeededGenerator(seed: 5)
            let chunk = (0..<65_536).map { _ in UInt8.random(in: .min ... .max, using: &random) }
            let begins: [(bytes: [UInt8], error: String)] = [
                (Array("GET / HTTP/1.1\r\n\r\n".utf8), "\(DebugLinkError.wrongSignature(0x47))"),
                ([0xCE, 0xFF, 0xFF, 0xFF, 0xFF, 0x7B], "\(DebugLinkError.invalidLength(-1, limit: 1_000_000))"),
                ([0xCE, 0, 0xFF, 0xFF, 0xFF, 0x7F], "\(DebugLinkError.invalidLength(0x7FFF_FFFF, limit: 1_000_000))"),
                ([0xCE, 0x40, 0x42, 0x0F, 0, 0x7B], "\(DebugLinkError.invalidMessage("it is not one JSON object"))"),
                (
                    DebugFraming.objcio.frame(Array("[]".utf8)),
                    "\(DebugLinkError.invalidMessage("it is not one JSON object"))"
                ),
            ]

            for (number, (begin, error)) in begins.enumerated() {
                async let sent = Self.flood(server.address, begin: begin, chunk: chunk)
                let id = try await changes.waitForConnection()
                #expect(try await changes.waitForEnd(of: id) == error)
                let count = try await sent
                #expect(count < 1_000_000_000)

                try await app.send("{}")
                try await changes.waitForState(number + 1, of: app.id)
            }
            #expect(await server.apps.apps.map(\.id) == [app.id])
        }
    }

    @Test func `an app that ends in the middle of a frame is disconnected with a named error`() async throws {
        try await DebugLinkFixture.running { server in
            var changes = await Changes(of: server)
            let app = try await FakeApp.connect(to: server, &changes)

            try await app.stream.send(DebugFraming.objcio.frame(Array("{}".utf8)).dropLast())
            app.stream.finish()

            #expect(try await changes.waitForEnd(of: app.id) == "\(DebugLinkError.endedInFrame)")
        }
    }

    @Test func `incomplete frames above the limit of all apps end the connection that exceeds it`() async throws {
        var limits = DebugLinkLimits()
        limits.incompleteBytes = 100_000
        try await DebugLinkFixture.running(limits: limits) { server in
            var changes = await Changes(of: server)
            let app = try await FakeApp.connect(to: server, &changes)
            let greedy = try await FakeApp.connect(to: server, &changes)

            // Announces 64 MiB.
            try await greedy.stream.send([0xCE, 0, 0, 0, 4] + [UInt8](repeating: 0x20, count: 100_001))

            let error = DebugLinkError.tooManyIncompleteBytes(limit: 100_000)
            #expect(try await changes.waitForEnd(of: greedy.id) == "\(error)")
            try await app.send("{}")
            try await changes.waitForState(1, of: app.id)
        }
    }
}
