import FoundationEssentials
import Model
import TestSupport
import Testing

/// An Android phone and an iPhone wherever phones and their apps are shown, on their own host and on another one of the team.
@Suite(.needs(.adb, .usbmuxd, .etcd, .python), .timeLimit(.minutes(4)), .scratchFolder) struct AndroidEverywhereTests {
    private let scratch = ScratchFolder.current
    private static let (android, ios) = ("android-R58M12ABCDE", Phones.one)

    private func line(containing words: String..., of program: Program) async throws {
        try await eventually("a line has \(words)\n\(program.log)") {
            program.output.contains { line in words.allSatisfy { line.contains($0) } }
        }
    }

    @Test
    func `both are in list, show, watch, MCP and events, and at another host, with platform, name, model and version`()
        async throws
    {
        let port = try FreePorts.take()[0]
        let (pixel, iphone) = (AndroidPhone("R58M12ABCDE", address: "127.0.11.1"), "127.0.11.2")
        let apps = [
            try await SampleApp("com.example.wallet", address: pixel.address, port: port, in: scratch),
            try await SampleApp("com.example.shop", address: iphone, port: port, in: scratch),
        ]
        let rig = try await UsbmuxdFixture(in: scratch)
        let adb = try await ADBFixture(in: scratch)
        let team = try await RunningTeam(in: scratch, phones: rig, android: adb, probing: port)
        let (here, there) = (team.lab2, team.lab1)
        let watch = try await here.start("watch", "--json")
        let list = try await here.start("watch")
        let events = try await Program(
            "curl",
            ["-sSN", "--unix-socket", here.socket, "http://localhost/v1/events?topics=all"],
            in: scratch
        )
        try await watch.waitForLine("\"event\":\"snapshot\"")
        try await list.waitForLine("no endpoints")
        try await events.waitForLine("event: ")

        var options = PhoneOptions()
        options.address = iphone
        options.lockdown = try LockdownServer(name: "Test iPhone", in: scratch)
        try await rig.attach(Self.ios, options)
        try await adb.attach(pixel)
        try await eventually("both apps are listed") {
            try await here.endpoints().filter { $0.state == .online && $0.id.host == nil }.count == 2
        }
        #expect(try await here.endpoints().map(\.id.text).sorted() == ["shop-test-iphone", "wallet-pixel-8"])
        try await expectPhones(of: here)
        for stream in [watch, events] {
            try await line(containing: Self.android, "\"android\"", "\"Pixel 8\"", "\"15\"", of: stream)
            try await line(containing: Self.ios, "\"ios\"", "\"Test iPhone\"", "\"iPhone15,3\"", "\"17.5\"", of: stream)
            try await line(containing: "\"wallet-pixel-8\"", "\"deviceName\":\"Pixel 8\"", of: stream)
        }
        try await line(containing: "+ phone \(Self.android)", of: list)
        try await line(containing: "+  wallet-pixel-8  ", of: list)
        try await expectTools(of: here, ids: ["wallet-pixel-8", "shop-test-iphone"])

        let ids = ["wallet-pixel-8.lab2", "shop-test-iphone.lab2"]
        for id in ids { try await team.waitForEndpoint(id, at: there) }
        try await eventually("both phones are shown at the other host") {
            try await there.devices().filter { $0.name != nil && $0.productVersion != nil }.count == 2
        }
        try await expectPhones(of: there)
        try await expectTools(of: there, ids: ids)
        for (id, udid) in zip(ids, [Self.android, Self.ios]) { try await expectTunnels(to: id, udid, port, at: there) }
        for app in apps { #expect(app.program.output.count { $0.hasPrefix("call: get_screen") } == 2) }
    }

    private func expectPhones(of broker: RunningBroker) async throws {
        let devices = try await broker.devices()
        let pixel = try #require(devices.first { $0.udid.text == Self.android })
        #expect(pixel.platform == .android && pixel.name?.text == "Pixel 8" && pixel.productType?.text == "Pixel 8")
        #expect(pixel.productVersion?.text == "15")
        let iphone = try #require(devices.first { $0.udid.text == Self.ios })
        #expect(iphone.platform == .ios && iphone.name?.text == "Test iPhone")
        #expect(iphone.productType?.text == "iPhone15,3" && iphone.productVersion?.text == "17.5")
        let table = try await broker.ask("devices").joined(separator: "\n")
        #expect(table.contains("Android   Pixel 8 15") && table.contains("iOS       iPhone15,3 17.5"), "\(table)")
        for endpoint in try await broker.endpoints() {
            let shown = try await broker.ask("show", endpoint.id.text)
            let isAndroid = endpoint.location.udid?.platform == .android
            let (phone, system) =
                isAndroid
                ? ("Pixel 8 (\(Self.android))", "Android 15, Pixel 8")
                : ("Test iPhone (\(Self.ios))", "iOS 17.5, iPhone15,3")
            #expect(shown.contains { $0.contains("phone ") && $0.contains(phone) }, "\(shown)")
            #expect(shown.contains { $0.contains("system ") && $0.contains(system) }, "\(shown)")
            #expect(endpoint.location.deviceName?.text == (isAndroid ? "Pixel 8" : "Test iPhone"))
        }
    }

    /// Checks what an agent sees, and calls both apps.
    private func expectTools(of broker: RunningBroker, ids: [String]) async throws {
        let agent = try await broker.start("mcp", input: .pipe)
        var number = 0
        func ask(_ method: String, _ params: String) async throws -> String {
            number += 1
            try agent.write(#"{"jsonrpc":"2.0","id":\#(number),"method":"\#(method)","params":\#(params)}"# + "\n")
            return try await agent.waitForLine(#"{"jsonrpc":"2.0","id":\#(number),"#)
        }
        let list = try await ask("tools/call", #"{"name":"endpoint_list","arguments":{}}"#)
        for word in ids + ["android", "ios", "Pixel 8", "Test iPhone"] {
            #expect(list.contains("\"\(word)\""), "\(list)")
        }
        let devices = try await ask("resources/read", #"{"uri":"patchbay://devices"}"#)
        for word in [Self.android, Self.ios, "Pixel 8", "Test iPhone", "iPhone15,3", "17.5"] {
            #expect(devices.contains(word), "\(devices)")
        }
        for id in ids {
            let arguments = #"{"endpoint":"\#(id)","name":"get_screen"}"#
            let answer = try await ask("tools/call", #"{"name":"endpoint_call","arguments":\#(arguments)}"#)
            #expect(!answer.contains("\"isError\":true") && answer.contains("\"result\""), "\(answer)")
        }
    }

    /// Reaches an app of another host by a tunnel to its endpoint, one to its phone, and a stream.
    private func expectTunnels(to id: String, _ udid: String, _ app: UInt16, at broker: RunningBroker) async throws {
        for words in [["-e", id], ["tcp:0:\(app)", "--device", udid]] {
            let forward = try await broker.start(["forward", "--detach"] + words)
            #expect(try await forward.exitStatus() == .exited(0), "\(forward.log)")
            let port = forward.output.first?.split(separator: " ").first?.split(separator: ":").last.flatMap {
                UInt16($0)
            }
            #expect(try await broker.fetch("/health", port: try #require(port)).contains("\"status\""), "\(words)")
        }
        let stdio = try await broker.start("stdio", "\(udid):\(app)", input: .pipe)
        try stdio.write("GET /health HTTP/1.0\r\n\r\n")
        stdio.closeInput()
        try await stdio.waitForLine("\"status\"")
        #expect(try await stdio.exitStatus() == .exited(0), "\(stdio.log)")
    }
}
