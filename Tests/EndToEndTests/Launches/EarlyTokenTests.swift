import Model
import TestSupport
import Testing

/// A session URL that is given before the app listens: AppReveal logs the URL first.
@Suite(.needs(.python), .timeLimit(.minutes(3)), .scratchFolder) struct EarlyTokenTests {
    private let scratch = ScratchFolder.current

    /// The platforms of AppReveal with a token. Each has its own line of the log.
    private static let platforms = SampleMode.allCases.filter { $0 != .ios09 }

    /// A command that takes the line of the log.
    enum Command: CaseIterable {
        case set, scan

        fileprivate func give(_ line: String, of id: EndpointID, to broker: RunningBroker) async throws {
            guard self == .scan else { return try await broker.setSecret(line, of: id.text) }
            let scan = try await broker.start("secret", "scan", input: .pipe)
            try scan.write("before\n\(line)\nafter\n")
            scan.closeInput()
            #expect(try await scan.exitStatus() == .exited(0), "\(scan.log)")
            #expect(scan.output.count == 3 && scan.output[1].hasSuffix("appreveal_session_token=[redacted]"))
        }
    }

    @Test(arguments: platforms, Command.allCases)
    func `the token of a URL whose port nobody listens on yet is kept for the launch that will listen`(
        platform: SampleMode,
        command: Command
    ) async throws {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let port = try FreePorts.take()[0]
        // The same launch as below, unseen by the broker, tells the line of this platform.
        let unseen = try await SampleApp(mode: platform, port: port, in: scratch)
        let (line, token) = (try #require(unseen.sessionURL), try #require(unseen.token))
        try await unseen.quit()
        _ = try await broker.ask("add", "shop", "127.0.0.1:\(port)", "--kind", "appreveal")
        let id = try #require(try await broker.endpoints().first).id

        try await command.give(line, of: id, to: broker)
        let app = try await SampleApp(mode: platform, token: token, port: port, in: scratch)

        let call = try await broker.start("call", id.text, "launch_context", "--wait", "20s")
        #expect(try await call.exitStatus() == .exited(0), "\(call.log)\n\(broker.daemon.log)")
        #expect(Set(app.receivedTokens) == [token])
    }
}
