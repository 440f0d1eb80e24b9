import Model
import TestSupport
import Testing

/// The log of an app on a phone of another host of the team.
@Suite(.needs(.adb, .etcd, .python), .timeLimit(.minutes(3)), .scratchFolder) struct TeamLogTests {
    private let scratch = ScratchFolder.current

    @Test func `the log of an app of another host is read and followed, and that of the phone is refused`() async throws
    {
        let apps = try AndroidApps(in: scratch)
        var phone = AndroidPhone("R58M12ABCDE", address: PhoneOptions.loopback)
        (phone.log, phone.apps) = (apps.logFile, apps.appsFile)
        let server = try await SampleApp(mode: .android, address: phone.address, in: scratch)
        let shop = AndroidApps.App(server.bundle, processID: 4_711, user: 10_234, ports: [server.port])
        let bank = AndroidApps.App("com.example.bank", processID: 4_712, user: 10_235)
        try apps.set([shop, bank])
        try apps.log(AndroidApps.sessionURL(port: server.port, token: server.token ?? ""), by: shop)
        let team = try await RunningTeam(in: scratch, android: try await ADBFixture([phone], in: scratch))
        let id = "shop-pixel-8.lab2"
        try await team.waitForEndpoint(id, at: team.lab1)

        let shown = try await team.lab1.ask("log", id)
        #expect(shown.count == 1 && shown[0].hasSuffix("token=[removed]"), "\(shown)")
        let follow = try await team.lab1.start("log", id, "--follow")
        try await follow.waitForLine("token=[removed]")
        try apps.log("of the bank", by: bank)
        try apps.log("of the shop", by: shop)
        try await follow.waitForLine("of the shop")
        #expect(!follow.log.contains("of the bank"))
        let whole = try await team.lab1.start("log", "android-R58M12ABCDE")
        #expect(try await whole.exitStatus() != .exited(0))
        #expect(whole.log.contains("lab2"), "\(whole.log)")
    }
}
