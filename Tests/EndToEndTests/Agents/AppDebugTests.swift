import Apps
import FoundationEssentials
import Model
import TestSupport
import Testing

/// An app with app-debug on the cable, used by agents and by `patchbay call`.
@Suite(.needs(.usbmuxd, .python), .timeLimit(.minutes(3)), .scratchFolder) struct AppDebugTests {
    private let scratch = ScratchFolder.current

    /// A phone with an app on port 9876, where app-debug listens.
    private struct Rig {
        let broker: RunningBroker
        let address: String
        let apiPort: UInt16
        let scratch: ScratchFolder

        func launch(videoSize: Int = 3_000_000) async throws -> AppDebugApp {
            try await AppDebugApp(address: address, port: 9_876, videoSize: videoSize, in: scratch)
        }

        /// The ID of the app, once it is listed as online.
        func listedID() async throws -> String {
            try await eventually("the app is listed") {
                try await broker.endpoints().first { $0.kind == .appDebug && $0.state == .online }?.id.text
            }
        }

        func agent(at path: String) async throws -> AgentClient {
            let agent = try await AgentBroker(socket: broker.socket, port: apiPort, in: scratch)
            let url = "http://127.0.0.1:\(apiPort)/\(path)"
            return try await AgentClient(.mcp1, to: url, grant: agent.grant, in: scratch)
        }
    }

    private func startRig() async throws -> Rig {
        let port = try FreePorts.take()[0]
        // Each test's app listens on the same port.
        let address = "127.41.\(UInt8.random(in: 0...255)).\(UInt8.random(in: 1...254))"
        let phones = try await UsbmuxdFixture(in: scratch)
        var options = PhoneOptions.usual
        options.address = address
        try await phones.attach(Phones.one, options)
        let broker = try await RunningBroker(
            in: scratch,
            phones: phones,
            configuration: AgentBroker.configuration(port: port)
        )
        return Rig(broker: broker, address: address, apiPort: port, scratch: scratch)
    }

    @Test func `an agent has a screenshot two tool calls after its connection`() async throws {
        let rig = try await startRig()
        let app = try await rig.launch()
        _ = try await rig.listedID()
        let agent = try await rig.agent(at: "mcp")

        let list = try await agent.call("endpoint_list")
        let id = try #require(list.text?.split(separator: ": ").last?.split(separator: "\n").first)
        let shot = try await agent.call("endpoint_call", #"{"endpoint": "\#(id)", "name": "screenshot"}"#)

        #expect(shot.text != nil, "\(shot.log)")
        #expect(agent.resultTypes.count == 2 && agent.resultTypes.last?.contains("image") == true, "\(shot.log)")
        #expect(app.calls.last == "GET /screenshot")
        let file = "\(rig.broker.socket).png"
        _ = try await rig.broker.ask("call", String(id), "screenshot", "--output", file)
        let bytes = try Data(contentsOf: URL(filePath: file))
        let (image, _, _) = try await ImageResizer().resize(base64: bytes.base64EncodedString(), to: 10_000)
        #expect((image.width, image.height) == (390, 844))
    }

    @Test func `actions follow the screen, and a large state is outlined`() async throws {
        let rig = try await startRig()
        let app = try await rig.launch()
        let id = try await rig.listedID()

        #expect(try await rig.broker.ask("call", id, "list_actions").joined() == #"["open-cart","search"]"#)
        _ = try await rig.broker.ask("call", id, "activate", "identifier=open-cart")
        #expect(try await rig.broker.ask("call", id, "list_actions").joined() == #"["buy","back"]"#)
        #expect(app.calls.contains(#"POST /activate {"identifier":"open-cart"}"#))

        let outline = try await rig.broker.ask("call", id, "app_state").joined(separator: "\n")
        #expect(outline.contains("the limit is 4096") && outline.contains("/user: "), "\(outline)")
        let name = try await rig.broker.ask("call", id, "app_state", "pointer=/user/name")
        #expect(name.joined() == #""Anna""#)
    }

    @Test func `a call waits for an app that is relaunched`() async throws {
        let rig = try await startRig()
        let app = try await rig.launch()
        let id = try await rig.listedID()
        _ = try await rig.broker.ask("call", id, "list_actions")
        try await app.quit()

        let call = try await rig.broker.start("call", id, "activate", "identifier=search", "--wait", "30s")
        try await eventually("the app is missed") {
            try await rig.broker.endpoints().allSatisfy { $0.state != .online }
        }
        let next = try await rig.launch()

        #expect(try await call.exitStatus(within: .seconds(30)) == .exited(0), "\(call.log)")
        #expect(next.calls.count { $0.hasPrefix("POST /activate") } == 1)
    }

    @Test func `a recording is a link, and the file is saved byte for byte`() async throws {
        let rig = try await startRig()
        _ = try await rig.launch(videoSize: 5_000_000)
        let id = try await rig.listedID()
        let agent = try await rig.agent(at: "e/\(id)/mcp")

        let start = try await agent.call("record_start")
        #expect(start.text != nil, "\(start.log)")
        let stop = try await agent.call("record_stop")
        #expect(stop.text?.contains("an MP4 file of 5000000 bytes") == true, "\(stop.log)")
        #expect(stop.text?.contains("patchbay://artifact/") == true)

        _ = try await rig.broker.ask("call", id, "record_start")
        let file = "\(rig.broker.socket).mp4"
        _ = try await rig.broker.ask("call", id, "record_stop", "--output", file)
        let bytes = try Data(contentsOf: URL(filePath: file))
        #expect(bytes.count == 5_000_000 && bytes[4..<8].elementsEqual("ftyp".utf8))
    }

    @Test func `an app at a breakpoint is explained, and answers after it continues`() async throws {
        let rig = try await startRig()
        let app = try await rig.launch()
        let id = try await rig.listedID()
        _ = try await rig.broker.ask("call", id, "list_actions")
        try app.stopAtBreakpoint()

        let call = try await rig.broker.start("call", id, "app_state", "--wait", "0s")
        #expect(try await call.exitStatus(within: .seconds(30)) != .exited(0))
        #expect(call.log.contains("it may be stopped at a breakpoint; continue it in the debugger"), "\(call.log)")

        try app.resume()
        try await eventually("the app answers") {
            let again = try await rig.broker.start("call", id, "list_actions")
            return try await again.exitStatus(within: .seconds(30)) == .exited(0)
        }
    }

    @Test func `a missing tool is refused with the reason, and abilities and limits are listed`() async throws {
        let rig = try await startRig()
        let app = try await rig.launch()
        let id = try await rig.listedID()

        let call = try await rig.broker.start("call", id, "tap", "x=1")
        #expect(try await call.exitStatus() == .exited(66))
        #expect(call.log.contains("app-debug activates elements by identifier; use activate"), "\(call.log)")
        let agent = try await rig.agent(at: "e/\(id)/mcp")
        let direct = try await agent.call("tap")
        #expect(direct.log.contains("app-debug activates elements by identifier; use activate"), "\(direct.log)")
        #expect(!app.calls.contains { $0.hasPrefix("POST") })

        let shown = try await rig.broker.ask("show", id, "--json").joined()
        #expect(shown.contains("\"actions by identifier\"") && shown.contains("no typing and no gestures"))
        let person = try await rig.broker.ask("show", id).joined(separator: "\n")
        #expect(person.contains("no typing and no gestures"), "\(person)")
    }
}
