import FoundationEssentials
import Glibc
import Model
import Synchronization
import TestSupport
import Testing

/// Apps of Android phones that are found by the phone's log, behind the real adb server.
@Suite(.needs(.adb, .avahi, .python), .timeLimit(.minutes(3)), .scratchFolder) struct AndroidLogTests {
    private let scratch = ScratchFolder.current
    private static let configuration = "[api]\ntcp = false\n"
    private static let user: UInt32 = 10_234

    /// A simulated phone with its apps and its log.
    private struct Phone {
        var phone: AndroidPhone
        let apps: AndroidApps

        init(_ serial: String, address: String = PhoneOptions.loopback, in scratch: ScratchFolder) throws {
            apps = try AndroidApps(named: serial, in: scratch)
            phone = AndroidPhone(serial, address: address)
            (phone.log, phone.apps) = (apps.logFile, apps.appsFile)
        }

        /// Starts an app of the phone, which logs its session URL.
        func launch(
            process: UInt32,
            port: UInt16 = 0,
            in scratch: ScratchFolder
        ) async throws -> (app: SampleApp, entry: AndroidApps.App) {
            let app = try await SampleApp(mode: .android, address: phone.address, port: port, in: scratch)
            let entry = AndroidApps.App(app.bundle, processID: process, user: AndroidLogTests.user, ports: [app.port])
            try apps.set([entry])
            let token = try #require(app.token)
            try apps.log(AndroidApps.sessionURL(port: app.port, token: token), by: entry)
            return (app, entry)
        }
    }

    private func call(_ tool: String, of id: String, number: Int, by agent: Program) async throws -> String {
        let arguments = #"{"endpoint":"\#(id)","name":"\#(tool)"}"#
        let params = #"{"name":"endpoint_call","arguments":\#(arguments)}"#
        try agent.write(#"{"jsonrpc":"2.0","id":\#(number),"method":"tools/call","params":\#(params)}"# + "\n")
        return try await agent.waitForLine(#"{"jsonrpc":"2.0","id":\#(number),"#)
    }

    @Test func `an app on a cable needs one call to its first screenshot, and no person, also after a relaunch`()
        async throws
    {
        let phone = try Phone("R58M12ABCDE", in: scratch)
        let (first, _) = try await phone.launch(process: 4_711, in: scratch)
        let android = try await ADBFixture(in: scratch)
        let broker = try await RunningBroker(in: scratch, android: android, configuration: Self.configuration)
        let agent = try await broker.start("mcp", input: .pipe)

        let begin = ContinuousClock.now
        try await android.attach(phone.phone)
        try await eventually("the app is listed") { try await broker.endpoints().contains { $0.state == .online } }
        let shot = try await call("screenshot", of: "shop-pixel-8", number: 1, by: agent)
        #expect(shot.contains(#""type":"image""#), "\(shot)\n\(broker.daemon.log)")
        print("from plug to screenshot: \(begin.duration(to: .now))")
        #expect(Set(first.receivedTokens) == [first.token])
        let endpoint = try #require(try await broker.endpoints().first { $0.state == .online })
        #expect(endpoint.id.text == "shop-pixel-8" && endpoint.app.text == "com.example.shop")
        #expect(endpoint.location.udid?.text == "android-R58M12ABCDE")

        try await first.quit()
        try phone.apps.set([])
        let (second, _) = try await phone.launch(process: 4_712, in: scratch)
        try await eventually("the relaunched app has its token") {
            try await call("screenshot", of: "shop-pixel-8", number: 2, by: agent).contains(#""type":"image""#)
        }
        #expect(Set(second.receivedTokens) == [second.token])
        #expect(try await broker.endpoints().filter { $0.kind == .appreveal }.count == 1)

        let third = try await relaunch(second, of: phone)
        try await eventually("the app relaunched on the same port has its token") {
            try await call("screenshot", of: "shop-pixel-8", number: 3, by: agent).contains(#""type":"image""#)
        }
        #expect(Set(third.receivedTokens) == [third.token])
        #expect(!broker.daemon.log.contains(try #require(third.token)))
    }

    private func relaunch(_ app: SampleApp, of phone: Phone) async throws -> SampleApp {
        try await app.quit()
        return try await phone.launch(process: 4_713, port: app.port, in: scratch).app
    }

    @Test func `a replug and a restart of the broker need no person either`() async throws {
        let phone = try Phone("R58M12ABCDE", in: scratch)
        let (app, _) = try await phone.launch(process: 4_711, in: scratch)
        let android = try await ADBFixture([phone.phone], in: scratch)
        let broker = try await RunningBroker(in: scratch, android: android, configuration: Self.configuration)
        try await expectToken(of: "shop-pixel-8", broker)
        try await android.detach(phone.phone.serial)
        try await android.attach(phone.phone)
        try await expectToken(of: "shop-pixel-8", broker)
        try await broker.restart()
        try await expectToken(of: "shop-pixel-8", broker)
        try await android.restart()
        try await expectToken(of: "shop-pixel-8", broker)
        #expect(Set(app.receivedTokens) == [app.token])
    }

    private func expectToken(of id: String, _ broker: RunningBroker) async throws {
        try await eventually("the app accepts a call") {
            try await broker.start("call", id, "get_screen").exitStatus() == .exited(0)
        }
    }

    @Test func `no app gets the token of another, and floods change nothing`() async throws {
        let phone = try Phone("R58M12ABCDE", in: scratch)
        let other = try Phone("RZ8N90XYZ12", address: "127.0.1.12", in: scratch)
        let app = try await SampleApp(mode: .android, address: phone.phone.address, in: scratch)
        let evil = try await SampleApp("com.example.evil", mode: .android, address: phone.phone.address, in: scratch)
        let owner = AndroidApps.App(app.bundle, processID: 4_711, user: Self.user, ports: [app.port])
        let attacker = AndroidApps.App(evil.bundle, processID: 6_666, user: 10_666, ports: [evil.port])
        try phone.apps.set([owner, attacker])
        let (token, stolen) = (try #require(app.token), try #require(evil.token))
        let android = try await ADBFixture([phone.phone, other.phone], in: scratch)
        let broker = try await RunningBroker(in: scratch, android: android, configuration: Self.configuration)
        try await eventually("both apps are found by their processes") {
            Set(try await broker.endpoints().filter { $0.state == .online }.map(\.id.text)) == [
                "shop-pixel-8", "evil-pixel-8",
            ]
        }

        // The attacker names the port of the other app, and the other app's token for its own port.
        try phone.apps.log(AndroidApps.sessionURL(port: app.port, token: stolen), by: attacker)
        try phone.apps.log(AndroidApps.sessionURL(port: 9, token: token), by: owner)
        let long = String(repeating: "x", count: 1 << 20)
        try phone.apps.log(long + " " + AndroidApps.sessionURL(port: app.port, token: stolen), by: owner)
        let flood = (0..<20_000).map { _ in
            AndroidApps.line(AndroidApps.sessionURL(port: .random(in: 1...9_999), token: stolen), by: attacker)
        }
        try phone.apps.logRaw(flood.joined())
        let begin = ContinuousClock.now
        let (quiet, _) = try await other.launch(process: 4_711, in: scratch)
        try await eventually("the other phone is not slowed") {
            try await broker.endpoints().contains { $0.routes.contains { $0.port == quiet.port && $0.isSecretHeld } }
        }
        print("token of the other phone: \(begin.duration(to: .now))")
        #expect(begin.duration(to: .now) < .seconds(20))
        #expect(app.receivedTokens.isEmpty && evil.receivedTokens.isEmpty)
        let held = try await broker.endpoints().filter { $0.routes.contains(where: \.isSecretHeld) }
        #expect(held.map(\.location.udid?.text) == ["android-RZ8N90XYZ12"])

        try phone.apps.log(AndroidApps.sessionURL(port: app.port, token: token), by: owner)
        try await expectToken(of: "shop-pixel-8", broker)
        #expect(Set(app.receivedTokens) == [token] && evil.receivedTokens.isEmpty)
    }

    @Test func `a Flutter app's VM service is an endpoint with its code, and gets no request`() async throws {
        let phone = try Phone("R58M12ABCDE", in: scratch)
        let requests = Mutex("")
        let server = try LoopbackServer(address: phone.phone.address, in: scratch) { connection in
            var buffer = [UInt8](repeating: 0, count: 4_096)
            let count = max(0, recv(connection, &buffer, buffer.count, 0))
            requests.withLock { $0 += String(decoding: buffer[..<count], as: UTF8.self) }
        }
        let entry = AndroidApps.App("com.example.flutter", processID: 4_711, user: Self.user, ports: [server.port])
        let url = "http://127.0.0.1:\(server.port)/EMYU73JbR-A=/"
        try phone.apps.log("The Dart VM service is listening on \(url)", tag: "flutter", by: entry)
        try phone.apps.set([entry])
        let android = try await ADBFixture([phone.phone], in: scratch)
        let broker = try await RunningBroker(in: scratch, android: android, configuration: Self.configuration)

        let endpoint = try await eventually("the VM service is listed with its code") {
            try await broker.endpoints().first { $0.kind == .dartVM && $0.routes.contains(where: \.isSecretHeld) }
        }
        #expect(endpoint.id.text == "flutter-pixel-8" && endpoint.app.text == "com.example.flutter")
        let port = try await broker.forward("-e", endpoint.id.text)
        let shown = try await broker.ask("show", endpoint.id.text).joined(separator: "\n")
        #expect(shown.contains("http://127.0.0.1:\(port)/EMYU73JbR-A=/"), "\(shown)")
        #expect(requests.withLock { $0 } == "")
    }

    @Test func `an advert of the same launch on Wi-Fi and the app on the cable are one endpoint`() async throws {
        let network = try await MDNSNetwork(["here", "pixel"], in: scratch)
        let phone = try Phone("R58M12ABCDE", in: scratch)
        let app = try await SampleApp(mode: .android, boot: "7f3a", address: phone.phone.address, in: scratch)
        let entry = AndroidApps.App(app.bundle, processID: 4_711, user: Self.user, ports: [app.port])
        try phone.apps.set([entry])
        try phone.apps.log(AndroidApps.sessionURL(port: app.port, token: try #require(app.token)), by: entry)
        let android = try await ADBFixture([phone.phone], in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            android: android,
            host: network.hosts[0],
            namespace: network.hosts[0].namespace,
            configuration: Self.configuration
        )
        _ = try await app.advertise(through: network.hosts[1])

        let endpoint = try await eventually("both routes are one endpoint") {
            let endpoints = try await broker.endpoints()
            return endpoints.count == 1 ? endpoints.first { $0.sources.count == 2 } : nil
        }
        #expect(endpoint.id.text == "shop-pixel-8" && Set(endpoint.sources) == [.bonjour, .adb])
        #expect(
            endpoint.routes.filter(\.isSecretHeld).map(\.route.isNetwork) == [false],
            "the token is for the cable alone"
        )
        try await expectToken(of: "shop-pixel-8", broker)
    }

    @Test func `without read_logs a phone's log gives nothing`() async throws {
        let phone = try Phone("R58M12ABCDE", in: scratch)
        let (app, _) = try await phone.launch(process: 4_711, in: scratch)
        let android = try await ADBFixture([phone.phone], in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            android: android,
            configuration: Self.configuration + "[devices]\nread_logs = false\nprobe_ports = [\(app.port)]\n"
        )
        let endpoint = try await eventually("the app is found by its port") {
            try await broker.endpoints().first { $0.state == .online }
        }
        try await Task.sleep(for: .seconds(1))
        #expect(endpoint.app.isEmpty)
        #expect(try await broker.endpoints().allSatisfy { $0.routes.allSatisfy { !$0.isSecretHeld } })
        #expect(app.receivedTokens.isEmpty)
    }
}
