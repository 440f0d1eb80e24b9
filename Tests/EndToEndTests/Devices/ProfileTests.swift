import FoundationEssentials
import Model
import TestSupport
import Testing

/// Debug servers on the ports of a phone, recognised by profiles through the unmodified usbmuxd.
@Suite(.needs(.usbmuxd), .timeLimit(.minutes(3)), .scratchFolder) struct ProfileTests {
    private let scratch = ScratchFolder.current
    private static let status =
        #"{"value":{"ready":true,"os":{"name":"iOS","version":"17.1"},"ios":{},"build":{"time":"now","version":"9.1.0","#
        + #""productBundleIdentifier":"com.facebook.WebDriverAgentRunner"}},"sessionId":null}"#
    private static let own = """
        name = "shop-debug"
        ports = [8090]
        [[recognition]]
        path = "/info"
        json = { type = "object", required = ["shop"] }
        [identity.app]
        path = "/info"
        pointer = "/shop"
        [[tool]]
        name = "info"
        description = "Returns the shop."
        path = "/info"
        read_only = true

        """

    /// A phone with servers on these ports, which no other test's phone has.
    private func startBroker(
        _ servers: [UInt16: @Sendable (String) -> String?],
        configuration: String
    ) async throws -> RunningBroker {
        var options = PhoneOptions.usual
        options.address = "127.40.\(UInt8.random(in: 0...255)).\(UInt8.random(in: 1...254))"
        for (port, answer) in servers {
            _ = try LoopbackServer(address: options.address, port: port, in: scratch, http: answer)
        }
        try scratch.makeFolder("profiles")
        try scratch.write(Self.own, to: "profiles/shop-debug.toml")
        let rig = try await UsbmuxdFixture(in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig, configuration: configuration)
        try await rig.attach(Phones.one, options)
        return broker
    }

    @Test func `each server is listed with the kind of its profile, and any other as tcp`() async throws {
        let servers: [UInt16: @Sendable (String) -> String?] = [
            9_876: { $0 == "/actions" ? #"["buy"]"# : nil },
            8_100: { $0 == "/status" ? Self.status : nil },
            8_090: { $0 == "/info" ? #"{"shop":"com.example.shop"}"# : nil },
            8_091: { _ in #"{"status":"ok"}"# },
        ]
        let configuration = "[devices]\nprobe_ports = [8091]\n"
        let broker = try await startBroker(servers, configuration: configuration)
        try await eventually("every server is identified") {
            let endpoints = try await broker.endpoints()
            let kinds = endpoints.map { "\($0.routes.first?.route.port ?? 0) \($0.kind) \($0.app)" }
            return Set(kinds) == [
                "9876 app-debug ", "8100 webdriveragent com.facebook.WebDriverAgentRunner",
                "8090 shop-debug com.example.shop", "8091 tcp ",
            ]
        }
    }

    @Test func `profiles lists the installed and the user's own, and check tries one on a live server`() async throws {
        let servers: [UInt16: @Sendable (String) -> String?] = [8_090: { $0 == "/info" ? #"{"shop":"x"}"# : nil }]
        let broker = try await startBroker(servers, configuration: "[devices]\nprobe_ports = []\n")
        let names = try await broker.ask("profiles", "--quiet")
        #expect(
            names == ["app-debug", "debugbridge", "devicekit", "mobilecli", "shop-debug", "simlock", "webdriveragent"]
        )
        try await eventually("the phone is listed") { try await broker.ask("devices", "-q") == [Phones.one] }

        let file = scratch.file("profiles/shop-debug.toml")
        let check = try await broker.ask("profiles", "check", file, "--port", "8090")
        #expect(
            check == [
                "shop-debug: the profile is valid and has 1 tool.", "GET /info: status 200: as the profile says",
                "Recognised: app x, version -, launch -.", "tool info: answered",
            ]
        )

        let other = try scratch.write(Self.own.replacing("\"shop\"]", with: "\"bank\"]"), to: "other.toml")
        let mismatch = try await broker.start("profiles", "check", other, "--port", "8090")
        #expect(try await mismatch.exitStatus() == .exited(1))
        #expect(mismatch.log.contains("\"bank\" is missing"), "\(mismatch.log)")

        let invalid = try scratch.write(Self.own.replacing("ports", with: "prots"), to: "invalid.toml")
        let error = try await broker.start("profiles", "check", invalid)
        #expect(try await error.exitStatus() == .exited(78))
        #expect(error.log.contains("invalid.toml:2:1: prots: there is no such key"), "\(error.log)")
    }
}
