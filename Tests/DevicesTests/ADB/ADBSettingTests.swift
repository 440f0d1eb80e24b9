import Testing

@testable import Devices

@Suite struct ADBSettingTests {
    @Test(arguments: [
        ("auto", ADBSetting.auto), ("off", .off),
        ("bench.example:5037", .address(.tcp(host: "bench.example", port: 5037))),
        ("localhost:5038", .address(.tcp(host: "127.0.0.1", port: 5038))),
        ("/run/adb", .address(.unix(path: "/run/adb"))),
    ])
    func `each form of the setting is read`(text: String, setting: ADBSetting) {
        #expect(ADBSetting(text) == setting)
    }

    @Test(arguments: ["", "on", "5037", "tcp:5037", "relative/path", "host:0"])
    func `other text is refused`(text: String) { #expect(ADBSetting(text) == nil) }

    @Test(arguments: [
        ([:], "127.0.0.1:5037"), (["ANDROID_ADB_SERVER_PORT": "5038"], "127.0.0.1:5038"),
        (["ANDROID_ADB_SERVER_ADDRESS": "::1"], "[::1]:5037"),
        (["ADB_SERVER_SOCKET": "tcp:5039", "ANDROID_ADB_SERVER_PORT": "5038"], "127.0.0.1:5039"),
        (["ADB_SERVER_SOCKET": "tcp:localhost:5039"], "127.0.0.1:5039"),
        (["ADB_SERVER_SOCKET": "localfilesystem:/run/adb"], "/run/adb"), (["ADB_SERVER_SOCKET": ""], "127.0.0.1:5037"),
    ])
    func `adb's variables choose the server`(environment: [String: String], address: String) throws {
        #expect(try ADBSetting.auto.address(environment)?.description == address)
        #expect(try ADBSetting.off.address(environment) == nil)
    }

    @Test(arguments: [
        ["ADB_SERVER_SOCKET": "tcp:192.0.2.1:5037"], ["ADB_SERVER_SOCKET": "tcp:bench.example:5037"],
        ["ANDROID_ADB_SERVER_ADDRESS": "127.example"], ["ANDROID_ADB_SERVER_PORT": "0"],
        ["ADB_SERVER_SOCKET": "localabstract:adb"], ["ADB_SERVER_SOCKET": "localfilesystem:adb"],
    ])
    func `a variable cannot name another machine or another kind of address`(environment: [String: String]) {
        #expect(throws: ADBError.self) { try ADBSetting.auto.address(environment) }
    }

    @Test func `the owner can name a server of another machine`() throws {
        let setting = try #require(ADBSetting("192.0.2.1:5037"))

        #expect(try setting.address([:]) == .tcp(host: "192.0.2.1", port: 5037))
    }
}
