import Model
import TestSupport
import Testing

/// A session token belongs to one launch: apps that end, and other apps that listen on their port.
@Suite(.needs(.usbmuxd, .python), .timeLimit(.minutes(3)), .scratchFolder) struct TokenLaunchTests {
    private let scratch = ScratchFolder.current

    @Test(arguments: [SampleMode.ios, .android], [Duration.zero, .seconds(3)])
    func `the token of an app that ended is sent to no other app on its port`(
        mode: SampleMode,
        pause: Duration
    ) async throws {
        let phone = try await AppPhone(in: scratch)
        let camera = try await phone.launch("com.example.cam", mode: mode)
        let id = try await phone.endpoint().id
        try await phone.broker.setSecret(try #require(camera.token), of: id.text)
        let (accepted, log) = try await phone.call(id)
        #expect(accepted, "\(log)")

        try await camera.quit()
        try await ContinuousClock().sleep(for: pause)
        let other = try await phone.launch("com.example.other", mode: mode)
        let (refused, reason) = try await phone.call(id)
        #expect(!refused, "\(reason)")
        _ = try await phone.endpoint("the other app is online")
        _ = try await phone.call(id)

        // A connection that brings a token is logged before its answer, and every call above was answered.
        #expect(other.receivedTokens.isEmpty)
    }

    @Test(arguments: [SampleMode.ios, .android])
    func `a token stays valid while its launch runs, also if the app closes idle connections`(
        mode: SampleMode
    ) async throws {
        let phone = try await AppPhone(in: scratch)
        let app = try await phone.launch("com.example.cam", mode: mode)
        let id = try await phone.endpoint().id
        try await phone.broker.setSecret(try #require(app.token), of: id.text)
        // Longer than two periods after which the app closes idle connections.
        for _ in 0..<4 {
            let (status, log) = try await phone.call(id)
            #expect(status, "\(log)")
            try await ContinuousClock().sleep(for: .seconds(3))
        }
        #expect(Set(app.receivedTokens) == [try #require(app.token)])
    }

    @Test func `a token that is given again works at once after a relaunch on either port`() async throws {
        let phone = try await AppPhone(in: scratch)
        var app = try await phone.launch("com.example.cam", boot: "b0")
        let id = try await phone.endpoint().id
        try await phone.broker.setSecret(try #require(app.token), of: id.text)
        for launch in 1...4 {
            try await app.quit()
            app = try await phone.launch("com.example.cam", boot: "b\(launch)")
            _ = try await phone.endpoint()
            try await phone.broker.setSecret(try #require(app.sessionURL), of: id.text)
            let (status, log) = try await phone.call(id)
            #expect(status, "\(log)")
            #expect(Set(app.receivedTokens) == [try #require(app.token)])
        }
    }

    @Test func `after a restart of the broker a token is sent only to a launch that proves itself`() async throws {
        let phone = try await AppPhone(in: scratch)
        let app = try await phone.launch("com.example.cam")
        let proved = try await phone.launch("com.example.proved", boot: "b1", at: 1)
        let ids = try await eventually("both apps are online") {
            let online = try await phone.broker.endpoints().filter { $0.state == .online }
            return online.count == 2 ? online.sorted { $0.port > $1.port }.map(\.id) : nil
        }
        for (one, id) in zip([app, proved], ids) {
            try await phone.broker.setSecret(try #require(one.token), of: id.text)
        }
        try await phone.broker.restart()
        _ = try await eventually("both apps are online again") {
            try await phone.broker.endpoints().count { $0.state == .online } == 2 ? true : nil
        }
        let sent = app.receivedTokens.count
        let (refused, _) = try await phone.call(ids[0])
        #expect(!refused && app.receivedTokens.count == sent)
        let (accepted, log) = try await phone.call(ids[1])
        #expect(accepted, "\(log)")
    }

    @Test func `a call of an app without its token is answered at once`() async throws {
        let phone = try await AppPhone(in: scratch)
        _ = try await phone.launch("com.example.cam")
        let id = try await phone.endpoint().id
        let start = ContinuousClock.now
        let call = try await phone.broker.start("call", id.text, "launch_context")
        #expect(try await call.exitStatus() == .exited(77))
        // The default wait is 10 s. Most of the time measured here starts the command.
        #expect(ContinuousClock.now - start < .seconds(2))
    }
}

extension Endpoint {
    fileprivate var port: UInt16 { routes.first?.port ?? 0 }
}
