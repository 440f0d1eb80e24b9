import FoundationEssentials
import Model
import TestSupport
import Testing

/// `patchbay mcp --app`, and the commands around it, with real phones, apps and a broker.
@Suite(.serialized, .needs(.root, .usbmuxd, .python), .timeLimit(.minutes(3)), .scratchFolder)
struct AppServerTests {
    private let scratch = ScratchFolder.current
    private static let phones = ["00008030-001A2B3C4D5E6F70", "00008101-000123456789ABCD"]

    /// A client of `patchbay mcp` on standard input and output.
    private struct Client {
        let program: Program

        /// Starts the server and makes the handshake.
        init(_ broker: RunningBroker, capabilities: String = "{}") async throws {
            program = try await broker.start("mcp", "--app", "com.example.shop", input: .pipe)
            try send(
                #"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","#
                    + #""capabilities":\#(capabilities),"clientInfo":{"name":"test","version":"1"}}}"#
            )
            try await program.waitForLine(#""id":1,"#)
            try send(#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        }

        func send(_ line: String) throws { try program.write(line + "\n") }

        func tools(_ number: Int) async throws -> String {
            try send(#"{"jsonrpc":"2.0","id":\#(number),"method":"tools/list"}"#)
            return try await program.waitForLine(#""id":\#(number),"#)
        }

        func beginCall(_ number: Int) throws {
            try send(
                #"{"jsonrpc":"2.0","id":\#(number),"method":"tools/call","params":{"name":"get_elements","arguments":{}}}"#
            )
        }

        func call(_ number: Int) async throws -> String {
            try beginCall(number)
            return try await program.waitForLine(#""id":\#(number),"#)
        }
    }

    /// An app on each of two phones, at the same port.
    private struct Apps {
        let programs: [SampleApp]
        let options: [PhoneOptions]

        init(in scratch: ScratchFolder) async throws {
            var (programs, options): ([SampleApp], [PhoneOptions]) = ([], [])
            for number in 0..<2 {
                var phone = PhoneOptions()
                phone.address = "127.\(200 + number).\(UInt8.random(in: 0...255)).\(UInt8.random(in: 1...254))"
                let port = programs.first?.port ?? 0
                programs.append(try await SampleApp(address: phone.address, port: port, in: scratch))
                options.append(phone)
            }
            (self.programs, self.options) = (programs, options)
        }

        /// The number of calls of the client to each app. The broker itself calls other tools.
        var calls: [Int] { programs.map { app in app.program.output.count { $0 == "call: get_elements" } } }
    }

    @Test func `one app is served on the phone where it runs, and on the same phone after a replug`() async throws {
        let apps = try await Apps(in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            phones: rig,
            configuration: "[api]\ntcp = false\n[devices]\nprobe_ports = [\(apps.programs[0].port)]\n"
        )
        let client = try await Client(broker)
        let first = try await client.tools(2)
        #expect(first.contains("patchbay_status"))
        let second = try await client.call(3)
        #expect(second.contains("has not run on any phone"))

        try await rig.attach(Self.phones[0], apps.options[0])
        try await client.program.waitForLine("notifications/tools/list_changed")
        let third = try await client.tools(4)
        #expect(third.contains("get_elements"))
        let fourth = try await client.call(5)
        #expect(!fourth.contains(#""isError":true"#))
        try await eventually("the apps tell of their calls") { apps.calls == [1, 0] }

        try await rig.attach(Self.phones[1], apps.options[1])
        try await eventually("both phones have the app") {
            try await broker.endpoints().count { $0.state == .online } == 2
        }
        let fifth = try await client.call(6)
        #expect(!fifth.contains(#""isError":true"#))
        try await rig.detach(Self.phones[0])
        try await rig.attach(Self.phones[0], apps.options[0])
        let sixth = try await client.call(7)
        #expect(!sixth.contains(#""isError":true"#))
        try await eventually("the apps tell of their calls") { apps.calls == [3, 0] }

        // Another session is asked, and a check takes the first phone.
        let other = try await Client(broker, capabilities: #"{"elicitation":{}}"#)
        try other.beginCall(2)
        _ = try await other.program.waitForLine("elicitation/create")
        let phone = try #require(
            try await broker.endpoints().first { $0.location.udid?.text.lowercased() == Self.phones[1].lowercased() }
        )
        try other.send(
            #"{"jsonrpc":"2.0","id":"patchbay-1","result":{"action":"accept","content":{"endpoint":"\#(phone.id)"}}}"#
        )
        let seventh = try await other.program.waitForLine(#""id":2,"#)
        #expect(!seventh.contains(#""isError":true"#))
        try await eventually("the apps tell of their calls") { apps.calls == [3, 1] }
        let check = try await broker.ask("mcp", "check", "--app", "shop")
        #expect(check.last == "The server works.", "\(check)")
        #expect(check.contains { $0.contains("several phones have the app") })
    }

    @Test func `a check without a broker fails with the next step, and a check with one succeeds`() async throws {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let works = try await broker.ask("mcp", "check")
        #expect(
            works.map { $0.split(separator: " ").prefix(2).joined(separator: " ") }.dropLast() == [
                "ok start", "ok initialize", "ok ping", "ok tools/list", "ok call", "ok end",
            ]
        )
        let missing = try await broker.start("mcp", "check", "--socket", "\(scratch.path)/none.sock")
        #expect(try await missing.exitStatus() == .exited(69))
        #expect(missing.log.contains("failed tools/list") && missing.log.contains("try: start it with"))
        broker.daemon.terminate()
        _ = try await broker.daemon.exitStatus()
    }

    @Test func `a client's file is changed and restored`() async throws {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let text = "{\n  // ours\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  }\n}\n"
        let file = try scratch.write(text, to: ".claude.json")
        func content() throws -> String { try String(contentsOf: URL(filePath: file), encoding: .utf8) }

        let shown = try await broker.ask("mcp", "install", "claude", "--app", "com.example.shop", "--dry-run")
        let arguments = #"["mcp", "--app", "com.example.shop", "--socket", "\#(broker.socket)"]"#
        #expect(shown.contains { $0.contains(arguments) })
        #expect(try content() == text)
        _ = try await broker.ask("mcp", "install", "claude", "--app", "com.example.shop")
        #expect(try content().contains("// ours") && content().contains("com.example.shop"))
        _ = try await broker.ask("mcp", "uninstall", "claude")
        #expect(try content() == text)
    }
}
