import Model
import TestSupport
import Testing

/// The server of mobilecli on this machine, played by a server written from its source.
@Suite(.needs(.python), .timeLimit(.minutes(3)), .scratchFolder) struct MobilecliTests {
    private let scratch = ScratchFolder.current

    /// A call of each tool, with the method and the parameters that mobilecli must receive, and a part of the result.
    private static let calls: [(words: [String], method: String, parameters: String, result: String)] = [
        (["devices"], "devices.list", "{}", #""id":"emulator-5554""#),
        (["devices", "platform=ios"], "devices.list", #"{"platform":"ios"}"#, #"{"devices":[]}"#),
        (["device_info"], "device.info", #"{"deviceId":""}"#, #""screenSize":{"width":412,"height":915,"scale":1}"#),
        (["screenshot", id], "device.screenshot", parameters(), "[image/png"),
        (["elements", id], "device.dump.ui", parameters(#""format":"json""#), #""label":"Buy""#),
        (["foreground_app", id], "device.apps.foreground", parameters(), "com.example.shop"),
        (["apps", id], "device.apps.list", parameters(), "com.example.shop"),
        (["tap", id, "x=10", "y=20"], "device.io.tap", parameters(#""x":10,"y":20"#), done),
        (["long_press", id, "x=1", "y=2"], "device.io.longpress", parameters(#""x":1,"y":2,"duration":500"#), done),
        (
            ["swipe", id, "x1=1", "y1=2", "x2=3", "y2=4"], "device.io.swipe",
            parameters(#""x1":1,"y1":2,"x2":3,"y2":4"#), done
        ),
        (["type", id, "text=7 & €"], "device.io.text", parameters(#""text":"7 & €""#), done),
        (["press_button", id, "button=BACK"], "device.io.button", parameters(#""button":"BACK""#), done),
        (
            ["set_orientation", id, "orientation=landscape"], "device.io.orientation.set",
            parameters(#""orientation":"landscape""#), done
        ),
        (["orientation", id], "device.io.orientation.get", parameters(), #"{"orientation":"landscape"}"#),
        (["open_url", id, "url=https://x.test/a"], "device.url", parameters(#""url":"https://x.test/a""#), done),
        (["launch_app", id, "bundleId=a.b"], "device.apps.launch", parameters(#""bundleId":"a.b""#), "Launched app"),
        (
            ["terminate_app", id, "bundleId=a.b"], "device.apps.terminate", parameters(#""bundleId":"a.b""#),
            "Terminated app"
        ),
        (["boot", id], "device.boot", parameters(), "booted successfully"),
    ]
    private static let id = "deviceId=emulator-5554"
    private static let done = #"{"status":"ok"}"#

    private static func parameters(_ members: String = "") -> String {
        #"{"deviceId":"emulator-5554"\#(members.isEmpty ? "" : ",")\#(members)}"#
    }

    private static func requests(to server: Program) -> [String] {
        server.output.filter { $0.hasPrefix("request: ") }
            .compactMap { try? JSON(parsing: String($0.dropFirst("request: ".count))).string }
    }

    @Test func `a server is recognised, gets the exact request of each tool, and its errors are told`() async throws {
        let script = "\(TestSupportFolder.sources)/sampleapp.py"
        let server = try await Program("python3", [script, "--role", "mobilecli"], in: scratch)
        let port = try await server.waitForLine("listening on ").split(separator: " ").last ?? ""
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        _ = try await broker.ask("add", "Lab", "127.0.0.1:\(port)", "--kind", "mobilecli")
        try await eventually("mobilecli is recognised") {
            try await broker.endpoints().first { $0.id.text == "lab" }?.state == .online
        }

        for call in Self.calls {
            let command = try await broker.start(["call", "lab"] + call.words)
            #expect(try await command.exitStatus() == .exited(0))
            #expect(command.log.contains(call.result), "\(call.words): \(command.log)")
            let request = #"{"jsonrpc":"2.0","id":1,"method":"\#(call.method)","params":\#(call.parameters)}"#
            try await eventually("\(call.words) is received") { Self.requests(to: server).contains(request) }
        }
        #expect(try await broker.endpoints().first?.version?.text == "0.9.9")
        let tools = try await broker.ask("tools", "lab").dropFirst().compactMap { $0.split(separator: " ").first }
        #expect(Set(tools.map(String.init)) == Set(Self.calls.map { $0.words[0] }), "\(tools)")

        let failed = try await broker.start("call", "lab", "press_button", "button=LOCK")
        #expect(try await failed.exitStatus() == .exited(1))
        let error = "error -32000: Server error: AndroidDevice: unsupported button key: LOCK"
        #expect(failed.log.contains(error), "\(failed.log)")
    }
}
