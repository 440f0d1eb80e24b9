import FoundationEssentials
import Glibc
import Model
import SystemIO
import TestSupport
import Testing

/// Android phones whose apps cannot be reached, and what a person has to do.
@Suite(.needs(.adb, .python), .timeLimit(.minutes(2)), .scratchFolder) struct AndroidStateTests {
    private let scratch = ScratchFolder.current

    /// A state in adb's list, its words in Patchbay, and a part of the next step.
    private static let states = [
        ("android-R58M12ABCDE", "unauthorized", "has not allowed USB debugging", "tap Allow"),
        ("android-10.0.0.7_5555", "offline", "does not answer", "over Wi-Fi, connect adb to its address again"),
        ("android-RZ8N90XYZ12", "no-permissions", "may not be opened", "android-sdk-platform-tools-common"),
        ("android-HT7A1", "unavailable", "runs no apps now", "adb reboot"),
    ]
    /// As adb 29 and later write it.
    private static let list = """
        R58M12ABCDE            unauthorized usb:1-1 transport_id:1
        10.0.0.7:5555          offline product:pixel model:Pixel_8 device:x transport_id:2
        RZ8N90XYZ12            no permissions (user in plugdev group; are your udev rules wrong?); see \
        [http://developer.android.com/tools/device.html] usb:1-3 transport_id:3
        HT7A1                  recovery usb:1-4 product:p model:Pixel_2 device:w transport_id:4

        """

    @Test func `each state has its words and its next step in devices, status, doctor, the API and MCP`() async throws {
        let server = try await ScriptedADBServer(Self.list, in: scratch)
        let broker = try await RunningBroker(in: scratch, configuration: server.configuration)
        try await eventually("all are listed") { try await broker.devices().count == 4 }

        let table = try await broker.ask("devices")
        let doctor = try await broker.start("doctor")
        _ = try await doctor.exitStatus()
        let checks = doctor.output.joined(separator: "\n")
        let answer = try await Program.run(
            "curl",
            ["-sS", "--unix-socket", broker.socket, "http://localhost/v1/problems"],
            in: scratch
        ).joined()
        let problems = try JSONCoding.decoder().decode(ListResponse<BrokerProblem>.self, from: Data(answer.utf8)).items
        let mcp = try await resource("patchbay://devices", broker)
        for (udid, state, obstacle, step) in Self.states {
            #expect(table.contains { $0.hasPrefix(udid) && $0.contains(" \(state) ") }, "\(table)")
            #expect(table.contains { $0.hasPrefix("\(udid) is \(state)") && $0.contains(step) }, "\(table)")
            #expect(checks.contains("\(udid) \(obstacle)") && checks.contains(step), "\(checks)")
            let problem = try #require(problems.first { $0.text.hasPrefix("\(udid) \(obstacle)") }, "\(problems)")
            #expect(problem.subject == "phone" && problem.hint?.contains(step) == true)
            #expect(mcp.contains(udid) && mcp.contains(state) && mcp.contains(step), "\(mcp)")
            let stdio = try await broker.start("stdio", "\(udid):9876")
            #expect(try await stdio.exitStatus() != .exited(0))
            #expect(stdio.log.contains("phone \(udid) \(obstacle)") && stdio.log.contains(step), "\(stdio.log)")
        }

        let status = try await broker.ask("status")
        #expect(status.contains { $0.contains("0 ready, 4 not: see `patchbay devices`") }, "\(status)")
        let named = status.filter { $0.hasPrefix("warning: phone: ") }
        #expect(named.count == 2, "only those that need a person: \(named)")
    }

    /// Reads a resource of the broker's MCP server.
    private func resource(_ uri: String, _ broker: RunningBroker) async throws -> String {
        let agent = try await broker.start("mcp", input: .pipe)
        try agent.write(#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"\#(uri)"}}"# + "\n")
        return try await agent.waitForLine(#"{"jsonrpc":"2.0","id":1,"#)
    }

    @Test func `a phone of the real adb server waits for its person, and a tunnel follows`() async throws {
        var pixel = AndroidPhone("R58M12ABCDE")
        pixel.isAuthorized = false
        let echo = try EchoServer(in: scratch)
        let android = try await ADBFixture([pixel], in: scratch)
        let broker = try await RunningBroker(in: scratch, android: android)
        let device = try await eventually("it is listed") {
            try await broker.devices().first { $0.state == .unauthorized }
        }
        #expect(
            try await broker.ask("status").contains { $0.hasPrefix("warning: phone: \(device.udid) has not allowed") }
        )

        try await android.detach(pixel.key)
        pixel.isAuthorized = true
        try await android.attach(pixel)
        let port = try await broker.forward("tcp:0:\(echo.port)", "--device", "android-R58M12ABCDE")
        let stream = try await SocketStream.connect(to: .ipv4(INADDR_LOOPBACK, port: port))
        try await stream.send([1])
        #expect(try await stream.receive(1) == [1])
        #expect(try await broker.ask("status").contains { $0.contains("1 attached") })
    }

    @Test
    func `two programs whose adb end each other's server are named, while there is a server and while there is none`()
        async throws
    {
        let server = try await ScriptedADBServer("", versions: ["0029", "0027"], life: 0.7, in: scratch)
        let broker = try await RunningBroker(in: scratch, configuration: server.configuration)
        try await eventually("status names the versions") {
            try await broker.ask("status").contains {
                $0.hasPrefix("warning: adb: ") && $0.contains("replace each other")
            }
        }
        for _ in 0..<5 {
            let status = try await broker.ask("status")
            #expect(status.contains { $0.contains("39") && $0.contains("41") && $0.contains("replace each other") })
            #expect(status.contains { $0.hasPrefix("try: two programs have different adb") }, "\(status)")
            try await Task.sleep(for: .milliseconds(300))
        }
        let doctor = try await broker.start("doctor")
        _ = try await doctor.exitStatus()
        #expect(doctor.output.contains { $0.contains("replace each other") }, "\(doctor.log)")
    }

    @Test func `of two phones with one serial only the first is used, and the second is named`() async throws {
        var (one, two) = (
            AndroidPhone("SAME", attachment: .tcp, address: "127.0.9.5"),
            AndroidPhone("SAME", attachment: .tcp, address: "127.0.9.6")
        )
        one.bootID = "11111111-1111-4111-8111-111111111111"
        two.bootID = "22222222-2222-4222-8222-222222222222"
        two.copy = "-2"
        let right = try LoopbackServer(address: one.address, in: scratch) {
            _ = BlockingStream.send(Array("first".utf8)[...], to: $0)
        }
        _ = try LoopbackServer(address: two.address, port: right.port, in: scratch) {
            _ = BlockingStream.send(Array("second".utf8)[...], to: $0)
        }
        let android = try await ADBFixture([one, two], in: scratch)
        let broker = try await RunningBroker(in: scratch, android: android)
        let problem = try await eventually("the second is named") {
            try await broker.ask("status").first { $0.hasPrefix("warning: adb: ") }
        }
        #expect(problem.contains("two of them have the serial SAME, so only the first one is used"))
        #expect(try await broker.devices().map(\.udid.text) == ["android-SAME"])
        let port = try await broker.forward("tcp:0:\(right.port)", "--device", "android-SAME")
        for _ in 0..<20 {
            let answer = try await SocketStream.connect(to: .ipv4(INADDR_LOOPBACK, port: port)).receiveToEnd()
            #expect(String(decoding: answer, as: UTF8.self) == "first")
        }
    }
}
