import Model
import TestSupport
import Testing

/// DeviceKit on the cable, played by a server that answers with the bytes of the original.
@Suite(.needs(.usbmuxd, .python), .timeLimit(.minutes(3)), .scratchFolder) struct DeviceKitTests {
    private let scratch = ScratchFolder.current

    /// A call of each tool, with the method and the parameters that DeviceKit must receive, and a part of the result.
    private static let calls: [(words: [String], method: String, parameters: String, result: String)] = [
        (["device_info"], "device.info", "{}", #"{"screenSize":{"width":390,"height":844},"scale":3}"#),
        (["screenshot"], "device.screenshot", #"{"format":"png"}"#, "[image/png"),
        (["elements"], "device.dump.ui", #"{"format":"json"}"#, #""rawIdentifier":"buy""#),
        (["elements", "format=raw"], "device.dump.ui", #"{"format":"raw"}"#, #""windowContextID":0"#),
        (["tap", "x=10.5", "y=20"], "device.io.tap", #"{"x":10.5,"y":20}"#, #"{"success":true}"#),
        (["long_press", "x=1", "y=2"], "device.io.longpress", #"{"x":1,"y":2,"duration":1}"#, #"{"success":true}"#),
        (
            ["swipe", "x1=1", "y1=2", "x2=3", "y2=4"], "device.io.swipe", #"{"x1":1,"y1":2,"x2":3,"y2":4}"#,
            #"{"success":true}"#
        ),
        (["type", "text=7 €"], "device.io.text", #"{"text":"7 €"}"#, #"{"success":true}"#),
        (["press_button", "button=volumeUp"], "device.io.button", #"{"button":"volumeUp"}"#, #"{"success":true}"#),
        (
            ["set_orientation", "orientation=LANDSCAPE"], "device.io.orientation.set", #"{"orientation":"LANDSCAPE"}"#,
            #"{"success":true}"#
        ),
        (["orientation"], "device.io.orientation.get", "{}", #"{"orientation":"LANDSCAPE"}"#),
        (["open_url", "url=https://x.test/a"], "device.url", #"{"url":"https://x.test/a"}"#, #"{"success":true}"#),
        (
            ["launch_app", "bundleId=com.example.cart"], "device.apps.launch", #"{"bundleId":"com.example.cart"}"#,
            #"{"success":true}"#
        ),
        (["foreground_app"], "device.apps.foreground", "{}", #"{"bundleId":"com.example.cart","name":"cart","pid":7}"#),
        (
            ["terminate_app", "bundleId=com.example.cart"], "device.apps.terminate",
            #"{"bundleId":"com.example.cart"}"#, #"{"terminated":true}"#
        ),
    ]

    /// The bytes of the requests that the server received.
    private static func requests(to server: Program) -> [String] {
        server.output.filter { $0.hasPrefix("request: ") }
            .compactMap { try? JSON(parsing: String($0.dropFirst("request: ".count))).string }
    }

    private static func request(_ method: String, _ parameters: String) -> String {
        let body = #"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(parameters)}"#
        return "POST /rpc HTTP/1.1\r\nHost: 127.0.0.1:12004\r\nContent-Type: application/json\r\nAccept: */*\r\n"
            + "User-Agent: patchbay/\(Version.text)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    @Test func `a server on a phone is recognised, and gets the exact request of each tool`() async throws {
        var options = PhoneOptions.usual
        options.address = "127.42.\(UInt8.random(in: 0...255)).\(UInt8.random(in: 1...254))"
        let server = try await Program(
            "python3",
            [
                "\(TestSupportFolder.sources)/sampleapp.py", "--role", "devicekit", "--address", options.address,
                "--port", "12004",
            ],
            in: scratch
        )
        try await server.waitForLine("listening on ")
        let phones = try await UsbmuxdFixture(in: scratch)
        try await phones.attach(Phones.one, options)
        let broker = try await RunningBroker(in: scratch, phones: phones, configuration: "[api]\ntcp = false\n")
        let id = try await eventually("DeviceKit is recognised") {
            try await broker.endpoints().first { "\($0.kind)" == "devicekit" && $0.state == .online }?.id.text
        }

        for call in Self.calls {
            let command = try await broker.start(["call", id] + call.words)
            #expect(try await command.exitStatus() == .exited(0))
            #expect(command.log.contains(call.result), "\(call.words): \(command.log)")
            #expect(Self.requests(to: server).last == Self.request(call.method, call.parameters))
        }
        let tools = try await broker.ask("tools", id).dropFirst().compactMap { $0.split(separator: " ").first }
        #expect(Set(tools.map(String.init)).isSubset(of: Self.calls.map { $0.words[0] }), "\(tools)")

        let failed = try await broker.start("call", id, "open_url", "url=")
        #expect(try await failed.exitStatus() == .exited(1))
        #expect(failed.log.contains("error -32602: Invalid URL format: ''"), "\(failed.log)")
        #expect(Self.requests(to: server).last == Self.request("device.url", #"{"url":""}"#))
    }

    @Test func `the server refuses what the original refuses`() async throws {
        let server = try await Program(
            "python3",
            ["\(TestSupportFolder.sources)/sampleapp.py", "--role", "devicekit"],
            in: scratch
        )
        let port = try await server.waitForLine("listening on ").split(separator: " ").last ?? ""
        func post(_ body: String) async throws -> String {
            let url = "http://127.0.0.1:\(port)/rpc"
            return try await Program.run("curl", ["-sS", "-d", body, url], in: scratch).joined()
        }
        let missing = "Invalid parameters: The data couldn’t be read because it is missing."
        let malformed = "Invalid parameters: The data couldn’t be read because it isn’t in the correct format."
        for (method, parameters, code, message) in [
            ("device.io.pinch", "{}", -32601, "Method not found"),
            ("device.io.longpress", #"{"x":1,"y":2}"#, -32602, missing),
            ("device.io.swipe", #"{"x1":1.5,"y1":2,"x2":3,"y2":4}"#, -32602, malformed),
            ("device.io.button", #"{"button":"HOME"}"#, -32602, malformed),
            ("device.screenshot", "{}", -32602, missing),
            ("device.screenshot", #"{"format":"bmp"}"#, -32602, "Unsupported image format: bmp"),
        ] {
            let answer = try await post(#"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":\#(parameters)}"#)
            let error = #"{"code":\#(code),"message":"\#(message)"}"#
            #expect(answer == #"{"jsonrpc":"2.0","error":\#(error),"id":1}"#)
        }
        let parse = #"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}"#
        #expect(try await post("[]") == parse)
        let ignored = try await post(#"{"jsonrpc":"2.0","method":"device.io.tap","params":{"x":1,"y":2,"z":3}}"#)
        #expect(ignored == #"{"jsonrpc":"2.0","result":{"success":true}}"#)
    }
}
