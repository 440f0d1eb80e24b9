import Model
import TestSupport
import Testing

/// AppReveal on the cable, used by an agent that knows nothing but the address of the broker.
@Suite(.needs(.usbmuxd, .python), .timeLimit(.minutes(3)), .scratchFolder) struct FirstScreenshotTests {
    private let scratch = ScratchFolder.current

    @Test(arguments: [SampleMode.ios, .flutter])
    func `an agent has a screenshot of AppReveal two tool calls after its connection, if the token is stored`(
        mode: SampleMode
    ) async throws {
        var options = PhoneOptions.usual
        options.address = "127.43.\(UInt8.random(in: 0...255)).\(UInt8.random(in: 1...254))"
        let app = try await SampleApp(mode: mode, address: options.address, port: 9_876, in: scratch)
        let phones = try await UsbmuxdFixture(in: scratch)
        try await phones.attach(Phones.one, options)
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(
            in: scratch,
            phones: phones,
            configuration: AgentBroker.configuration(port: port)
        )
        let id = try await eventually("the app is listed") {
            try await broker.endpoints().first { $0.kind == .appreveal && $0.state == .online }?.id.text
        }
        try await broker.setSecret(try #require(app.token), of: id)
        let agentBroker = try await AgentBroker(socket: broker.socket, port: port, in: scratch)
        let url = "http://127.0.0.1:\(port)/mcp"
        let agent = try await AgentClient(.mcp1, to: url, grant: agentBroker.grant, in: scratch)

        let list = try await agent.call("endpoint_list")
        let listed = try #require(list.text?.split(separator: ": ").last?.split(separator: "\n").first)
        let shot = try await agent.call("endpoint_call", #"{"endpoint": "\#(listed)", "name": "screenshot"}"#)

        #expect(listed == id)
        #expect(shot.text != nil, "\(shot.log)")
        #expect(agent.resultTypes.count == 2 && agent.resultTypes.last?.contains("image") == true, "\(shot.log)")
        #expect(app.program.output.count { $0.hasPrefix("call: screenshot") } == 1)
    }
}
