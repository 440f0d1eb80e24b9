import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Apps

@Suite(.timeLimit(.minutes(1))) struct DebugLinkTeeTests {
    /// Another debugger that accepts connections.
    private struct OtherDebugger {
        let listener: Listener

        init() throws { listener = try Listener(on: DebugLinkListener.loopback) }

        var dial: DebuggerDial {
            { [address = listener.address] in
                Connection(descriptor: try await address.connect(within: .seconds(5)), halfClose: .propagates)
            }
        }

        func accept() async throws -> SocketStream { SocketStream(owning: try await listener.accept()) }
    }

    @Test func `the frames of each app arrive at the other debugger byte for byte`() async throws {
        let other = try OtherDebugger()
        try await DebugLinkFixture.running(forwardingTo: other.dial) { listener in
            var changes = await Changes(of: listener)
            for framing in DebugFraming.allCases {
                let app = try await FakeApp.connect(to: listener, &changes, framing)
                let picture = String(repeating: "A", count: 2_000_000)
                let messages = [#" {"state" : 1.0, "png":"\#(picture)"}"#, #"{"action":"é","state":{"b":[ ]}}"#]
                let frames = messages.flatMap { framing.frame($0.utf8) }

                async let sent: Void = app.stream.send(frames)
                let debugger = try await other.accept()

                #expect(try await debugger.receive(frames.count) == frames)
                try await sent
                app.stream.finish()
                #expect(try await debugger.receiveToEnd() == [])
            }
        }
    }

    @Test func `a state of the other debugger reaches only the app of its connection`() async throws {
        let other = try OtherDebugger()
        try await DebugLinkFixture.running(forwardingTo: other.dial) { listener in
            var changes = await Changes(of: listener)
            var apps: [(FakeApp, debugger: SocketStream)] = []
            for framing in [DebugFraming.jsonOverTCP, .objcio] {
                let app = try await FakeApp.connect(to: listener, &changes, framing)
                try await app.send(#"{"app":\#(app.id)}"#)
                try await changes.waitForState(1, of: app.id)
                apps.append((app, try await other.accept()))
            }
            let ((one, debuggerOfOne), (two, debuggerOfTwo)) = (apps[0], apps[1])

            try await debuggerOfOne.send(DebugFraming.jsonOverTCP.frame(Array(#"{"app": 10}"#.utf8)))
            #expect(try await one.receiveState() == #"{"app": 10}"#)

            // A state of another app is not passed on, because this app may not decode it.
            try await debuggerOfTwo.send(DebugFraming.objcio.frame(Array(#"{"other":1}"#.utf8)))
            try await debuggerOfTwo.send(DebugFraming.objcio.frame(Array(#"{"app": 20}"#.utf8)))
            #expect(try await two.receiveState() == #"{"app": 20}"#)
        }
    }

    @Test func `after the other debugger is gone, the app is served, and a new connection begins with a whole frame`()
        async throws
    {
        let other = try OtherDebugger()
        try await DebugLinkFixture.running(forwardingTo: other.dial) { listener in
            var changes = await Changes(of: listener)
            let app = try await FakeApp.connect(to: listener, &changes)
            let large = String(repeating: "x", count: 3_000_000)
            do {
                async let sent: Void = app.send("\"\(large)\"")
                let debugger = try await other.accept()
                try await sent
                // Leaves in the middle of the frame.
                _ = try await debugger.receive(1_000)
                debugger.makeAbortive()
            }
            try await changes.waitForState(1, of: app.id)
            try await app.send("2")
            try await changes.waitForState(2, of: app.id)

            let debugger = try await other.accept()
            // The connect is complete before the tee knows it, so the first frames may be too early for it.
            let frame = DebugFraming.objcio.frame(FakeApp.message("3"))
            let received = try await withThrowingTaskGroup(of: [UInt8].self) { group in
                group.addTask { try await debugger.receive(frame.count) }
                group.addTask {
                    while true {
                        try await app.stream.send(frame)
                        try await Task.sleep(for: .milliseconds(10))
                    }
                }
                defer { group.cancelAll() }
                return try await group.next()
            }
            #expect(received == frame)
        }
    }

    @Test func `without approval the other debugger gets the frames of an app, and the app gets no state`()
        async throws
    {
        let other = try OtherDebugger()
        try await DebugLinkFixture.running(forwardingTo: other.dial, isApproved: false) { listener in
            var changes = await Changes(of: listener)
            let app = try await FakeApp.connect(to: listener, &changes)
            try await app.send("1")
            try await changes.waitForState(1, of: app.id)
            let debugger = try await other.accept()
            let frame = DebugFraming.objcio.frame(FakeApp.message("1"))
            #expect(try await debugger.receive(frame.count) == frame)

            try await debugger.send(DebugFraming.objcio.frame(Array("1".utf8)))
            // The end of the stream shows that the state was read, and a sent state would come before this one.
            debugger.finish()
            #expect(try await debugger.receiveToEnd() == [])
            try await listener.apps.send(state: 1, to: app.id)
            app.stream.finish()
            #expect(try await app.stream.receiveToEnd() == DebugFraming.objcio.frame(Array("1".utf8)))
        }
    }

    @Test func `the stream of an app is not passed on to the listener itself`() async throws {
        let address = Mutex<SocketAddress?>(nil)
        let dial: DebuggerDial = {
            let own = try #require(address.withLock { $0 })
            return Connection(descriptor: try await own.connect(within: .seconds(5)), halfClose: .propagates)
        }
        try await DebugLinkFixture.running(forwardingTo: dial) { listener in
            address.withLock { $0 = listener.address }
            var changes = await Changes(of: listener)
            let app = try await FakeApp.connect(to: listener, &changes)
            try await app.send("1")
            // The connection of the tee becomes an app for a moment, and ends without a frame.
            let own = try await changes.waitForConnection()
            #expect(own != app.id)
            #expect(try await changes.waitForEnd(of: own) == nil)
            try await app.send("2")
            try await changes.waitForState(2, of: app.id)
        }
    }

    @Test func `without the other debugger the app is served`() async throws {
        let refused = FailingDial()
        try await DebugLinkFixture.running(forwardingTo: refused.dial) { listener in
            var changes = await Changes(of: listener)
            let app = try await FakeApp.connect(to: listener, &changes)
            for number in 1...3 {
                try await app.send("\(number)")
                try await changes.waitForState(number, of: app.id)
            }

            try await listener.apps.send(state: 1, to: app.id)

            #expect(try await app.receiveState() == "1")
            for await _ in refused.attempts.stream.prefix(2) {}
        }
    }

    /// A dial that fails, and reports its attempts.
    private struct FailingDial: Sendable {
        let attempts = AsyncStream.makeStream(of: Void.self)

        var dial: DebuggerDial {
            { [attempts] in
                attempts.continuation.yield()
                throw SocketError.timedOut(DebugLinkListener.loopback)
            }
        }
    }
}
