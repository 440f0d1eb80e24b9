import Logging
import SystemIO
import TestSupport
import Testing

@testable import Apps

/// Runs a listener on the loopback interface.
enum DebugLinkFixture {
    static func running(
        limits: DebugLinkLimits = DebugLinkLimits(),
        forwardingTo otherDebugger: DebuggerDial? = nil,
        isApproved: Bool = true,
        clock: any Clock<Duration> = PollerClock(),
        log: any LogHandler = SwiftLogNoOpLogHandler(),
        _ body: (DebugLinkListener) async throws -> Void
    ) async throws {
        let listener = try DebugLinkListener(
            limits: limits,
            forwardingTo: otherDebugger,
            isApproved: { _ in isApproved },
            clock: clock,
            logger: Logger(label: "test") { _ in log }
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await listener.run() }
            try await body(listener)
            group.cancelAll()
        }
    }

    /// Returns a text of this size, a multiple of 4, that begins as a JPEG file in base64 does.
    static func picture(_ size: Int) -> String { "/9j/" + String(repeating: "A", count: size - 4) }
}

/// The changes of a listener, for one reader.
struct Changes {
    private var iterator: AsyncStream<DebugLinkChange>.Iterator

    init(of listener: DebugLinkListener) async {
        iterator = await listener.apps.subscribe().changes.makeAsyncIterator()
    }

    /// Waits until an app has this many states.
    mutating func waitForState(_ number: Int, of app: Int) async throws {
        _ = try await next {
            guard case .received(let received) = $0 else { return false }
            return received.id == app && received.lastState >= number
        }
    }

    /// Waits until an app stops in a frame or continues, and returns the reason of the stop.
    mutating func waitForStall() async throws -> String? {
        let change = try await next { if case .stalled = $0 { true } else { false } }
        guard case .stalled(let app) = change else { throw TestSupportError("no app has stopped") }
        return app.stall
    }

    /// Waits until an app is connected, and returns its number.
    mutating func waitForConnection() async throws -> Int {
        let change = try await next { if case .connected = $0 { true } else { false } }
        guard case .connected(let app) = change else { throw TestSupportError("no app has connected") }
        return app.id
    }

    /// Waits until an app is disconnected, and returns the reason.
    mutating func waitForEnd(of app: Int) async throws -> String? {
        let change = try await next { if case .disconnected(let ended) = $0 { ended.id == app } else { false } }
        guard case .disconnected(let ended) = change else { throw TestSupportError("app \(app) is connected") }
        return ended.failure
    }

    private mutating func next(_ isAwaited: (DebugLinkChange) -> Bool) async throws -> DebugLinkChange {
        while let change = await iterator.next() { if isAwaited(change) { return change } }
        throw TestSupportError("the changes ended before the awaited one")
    }
}

/// An app with the debugger client of one of the two framings.
struct FakeApp {
    let stream: SocketStream
    let framing: DebugFraming
    /// The number of the app at the listener.
    let id: Int

    /// Connects to a listener.
    static func connect(
        to listener: DebugLinkListener,
        _ changes: inout Changes,
        _ framing: DebugFraming = .objcio
    ) async throws -> FakeApp {
        let stream = try await SocketStream.connect(to: listener.address)
        return FakeApp(stream: stream, framing: framing, id: try await changes.waitForConnection())
    }

    static func message(_ state: String, picture: String? = nil) -> [UInt8] {
        let picture = picture.map { #","imageData":"\#($0)""# } ?? ""
        return Array(#"{"state":\#(state),"action":"tap"\#(picture)}"#.utf8)
    }

    func send(_ state: String, picture: String? = nil) async throws {
        try await stream.send(framing.frame(Self.message(state, picture: picture)))
    }

    /// Receives one frame and returns its content.
    func receiveState() async throws -> String {
        var decoder = DebugFrameDecoder()
        while true {
            if let content = try decoder.next() { return String(decoding: content, as: UTF8.self) }
            // Byte for byte, so that the next frame stays in the socket.
            let bytes = try await stream.receiveSome(atMost: 1)
            guard !bytes.isEmpty else { throw TestSupportError("the connection ended") }
            decoder.append(bytes)
        }
    }
}
