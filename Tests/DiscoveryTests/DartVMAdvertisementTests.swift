import Model
import Testing

@testable import Discovery

@Suite struct DartVMAdvertisementTests {
    private static let code = "EMYU73JbR-A="

    private func txt(_ items: String...) -> TXTRecord { TXTRecord(items: items.map { Array($0.utf8) }) }

    @Test(arguments: [
        "ws://127.0.0.1:8181/EMYU73JbR-A=/ws", "http://127.0.0.1:8181/EMYU73JbR-A=/",
        "ws://[::1]:8181/EMYU73JbR-A=/ws", "http://localhost:8181/EMYU73JbR-A=",
    ])
    func `the code is read from the URL of Flutter's tool`(uri: String) {
        let advertisement = DartVMAdvertisement(txt("ws_uri=\(uri)"), port: 8_181)

        #expect(advertisement.authCode?.reveal() == Self.code)
    }

    @Test func `the code is read from the record of the app`() {
        #expect(DartVMAdvertisement(txt("authCode=\(Self.code)"), port: 1).authCode?.reveal() == Self.code)
    }

    @Test(arguments: [
        "ws://127.0.0.1:8182/EMYU73JbR-A=/ws", "ws://192.168.1.20:8181/EMYU73JbR-A=/ws", "ws://127.0.0.1:8181/a/b/ws",
        "ftp://127.0.0.1:8181/EMYU73JbR-A=/", "ws://127.0.0.1:8181/ws", "ws://127.0.0.1/EMYU73JbR-A=/ws", "x",
        "ws://user@127.0.0.1:8181/EMYU73JbR-A=/ws", "ws://127.0.0.1:8181/a?b/ws",
    ])
    func `a URL of another service, host or form gives no code`(uri: String) {
        #expect(DartVMAdvertisement(txt("ws_uri=\(uri)"), port: 8_181).authCode == nil)
    }

    @Test func `the TXT record has no secret, in order and with the other values`() {
        let record = DartVMAdvertisement(
            txt(
                "hostname=rig",
                "ws_uri=ws://127.0.0.1:8181/\(Self.code)/ws",
                "AUTHCODE=\(Self.code)",
                "pid=7",
                "dtd_uri=ws://me:pass@127.0.0.1:9000/\(Self.code)?x=\(Self.code)",
                "empty=",
                "flag"
            ),
            port: 8_181
        ).txt

        #expect(
            record.items.map { String(decoding: $0, as: UTF8.self) } == [
                "hostname=rig", "ws_uri=ws://127.0.0.1:8181/(secret)", "AUTHCODE=(secret)", "pid=7",
                "dtd_uri=ws://127.0.0.1:9000/(secret)", "empty=", "flag",
            ]
        )
    }

    @Test func `the project and the device identify an app that Flutter's tool announces`() {
        let identity = AdvertisedIdentity(
            instance: "Flutter Tools on rig",
            kind: .dartVM,
            txt: txt("project_name=shop", "device_id=linux")
        )

        #expect(identity.app.text == "shop")
        #expect(!identity.appIsBundleID)
        #expect(identity.role.text == "linux")
    }
}
