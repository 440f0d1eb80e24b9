import Logging
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Apps

/// Clients that do not speak the protocol. `DebugFrameDecoderTests` has the errors of single frames.
@Suite(.timeLimit(.minutes(1))) struct DebugLinkGarbageTests {
    /// Sends bytes again and again until the listener ends the connection, at most 1 GB.
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
        try await DebugLinkFixture.running(limits: limits) { listener in
            var changes = await Changes(of: listener)
            let app = try await FakeApp.connect(to: listener, &changes)
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
                async let sent = Self.flood(listener.address, begin: begin, chunk: chunk)
                let id = try await changes.waitForConnection()
                #expect(try await changes.waitForEnd(of: id) == error)
                let count = try await sent
                #expect(count < 1_000_000_000)

                try await app.send("{}")
                try await changes.waitForState(number + 1, of: app.id)
            }
            #expect(await listener.apps.apps.map(\.id) == [app.id])
        }
    }

    @Test func `a client without a message of an app is no app, and is logged once and counted`() async throws {
        let log = WarningLog()
        try await DebugLinkFixture.running(log: log) { listener in
            var changes = await Changes(of: listener)
            for number in 1...3 {
                let client = try await FakeApp.connect(to: listener, &changes)
                #expect(await listener.apps.apps.map(\.place) == [nil])
                try await client.stream.send(Array("GET / HTTP/1.1\r\n".utf8))
                #expect(try await changes.waitForEnd(of: client.id) == "\(DebugLinkError.wrongSignature(0x47))")

                #expect(await listener.apps.refusals.count == number)
                #expect(await listener.apps.refusals.lastReason == "\(DebugLinkError.wrongSignature(0x47))")
                #expect(await listener.apps.apps.isEmpty)
            }
            let silent = try await FakeApp.connect(to: listener, &changes)
            silent.stream.finish()
            _ = try await changes.waitForEnd(of: silent.id)
            #expect(await listener.apps.refusals.count == 3)
            // The number of an app is free again.
            let app = try await FakeApp.connect(to: listener, &changes)
            try await app.send("1")
            try await changes.waitForState(1, of: app.id)
            #expect(await listener.apps.apps.map(\.place) == [1])
        }
        let lines = log.lines
        #expect(lines.count == 1)
        #expect(lines.first?.contains("127.0.0.1") == true)
        #expect(lines.first?.contains("0x47") == true)
    }

    @Test func `an app that breaks its framing is disconnected, and its states and the reason are kept`() async throws {
        try await DebugLinkFixture.running { listener in
            var changes = await Changes(of: listener)
            let app = try await FakeApp.connect(to: listener, &changes)
            try await app.send("1")
            try await changes.waitForState(1, of: app.id)
            try await app.stream.send([0x00])

            let reason = try await changes.waitForEnd(of: app.id)

            let kept = try #require(await listener.apps.apps.first)
            #expect(reason == "\(DebugLinkError.wrongSignature(0))")
            #expect(kept.failure == reason)
            #expect(try await listener.apps.states(of: app.id).count == 1)
            #expect(await listener.apps.refusals.count == 0)
        }
    }

    @Test func `an app that stops in a frame is reported with the reason, and continues`() async throws {
        let (clock, log) = (ManualClock(), WarningLog())
        try await DebugLinkFixture.running(clock: clock, log: log) { listener in
            var changes = await Changes(of: listener)
            let app = try await FakeApp.connect(to: listener, &changes)
            try await app.send("1")
            try await changes.waitForState(1, of: app.id)
            let frame = DebugFraming.objcio.frame(FakeApp.message("2"))
            try await app.stream.send(Array(frame.prefix(8)))
            await clock.waitForSleepers()
            clock.advance(by: .seconds(30))

            let stall = try await changes.waitForStall()
            // The content of the frame is known from its header of 5 bytes.
            let expected = DebugLinkError.stalledInFrame(received: 3, length: frame.count - 5, seconds: 30)
            #expect(stall == "\(expected)")

            try await app.stream.send(Array(frame.dropFirst(8)))
            #expect(try await changes.waitForStall() == nil)
            #expect(log.lines.count == 1)
            try await changes.waitForState(2, of: app.id)
        }
    }

    @Test func `a client that stops in its first frame is refused with the reason`() async throws {
        let clock = ManualClock()
        try await DebugLinkFixture.running(clock: clock) { listener in
            var changes = await Changes(of: listener)
            let client = try await FakeApp.connect(to: listener, &changes)
            // A length of 3 in big-endian byte order is 50,331,648 bytes.
            try await client.stream.send([0xCE, 0, 0, 0, 3] + Array("{}\n".utf8))
            await clock.waitForSleepers()
            clock.advance(by: .seconds(30))

            let reason = try await changes.waitForEnd(of: client.id)

            let expected = DebugLinkError.stalledInFrame(received: 3, length: 50_331_648, seconds: 30)
            #expect(reason == "\(expected)")
            #expect(await listener.apps.refusals.lastReason == reason)
            #expect(await listener.apps.apps.isEmpty)
        }
    }

    @Test func `an app that ends in the middle of a frame is disconnected with a named error`() async throws {
        try await DebugLinkFixture.running { listener in
            var changes = await Changes(of: listener)
            let app = try await FakeApp.connect(to: listener, &changes)

            try await app.stream.send(DebugFraming.objcio.frame(Array("{}".utf8)).dropLast())
            app.stream.finish()

            #expect(try await changes.waitForEnd(of: app.id) == "\(DebugLinkError.endedInFrame)")
        }
    }

    @Test func `incomplete frames above the limit of all apps end the connection that exceeds it`() async throws {
        var limits = DebugLinkLimits()
        limits.incompleteBytes = 100_000
        try await DebugLinkFixture.running(limits: limits) { listener in
            var changes = await Changes(of: listener)
            let app = try await FakeApp.connect(to: listener, &changes)
            let greedy = try await FakeApp.connect(to: listener, &changes)

            // Announces 64 MiB.
            try await greedy.stream.send([0xCE, 0, 0, 0, 4] + [UInt8](repeating: 0x20, count: 100_001))

            let error = DebugLinkError.tooManyIncompleteBytes(limit: 100_000)
            #expect(try await changes.waitForEnd(of: greedy.id) == "\(error)")
            try await app.send("{}")
            try await changes.waitForState(1, of: app.id)
        }
    }

    @Test func `a client that connects 100 times as an app causes a few lines`() async throws {
        var log = WarningLog()
        log.logLevel = .info
        try await DebugLinkFixture.running(log: log) { listener in
            var changes = await Changes(of: listener)
            for _ in 0..<100 {
                let app = try await FakeApp.connect(to: listener, &changes)
                try await app.send("{}")
                try await changes.waitForState(1, of: app.id)
                app.stream.finish()
                #expect(try await changes.waitForEnd(of: app.id) == nil)
            }

            let lines = log.lines.filter { $0.contains("app of the state debugger") }
            #expect((1...6).contains(lines.count), "\(lines)")
        }
    }
}

/// Collects the warnings of a listener with their metadata.
private struct WarningLog: LogHandler {
    private final class Lines: Sendable {
        let texts = Mutex<[String]>([])
    }

    private let collected = Lines()
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.warning

    var lines: [String] { collected.texts.withLock { $0 } }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { collected.texts.withLock { $0.append("\(event.message) \(event.metadata ?? [:])") } }
}
