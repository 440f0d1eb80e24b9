import Model
import Testing

@testable import Discovery

@Suite struct AdvertisedIdentityTests {
    @Test func `the TXT record gives app, version, launch ID and role`() {
        let txt = TXTRecord(items: [
            Array("bundleId=com.example.shop".utf8), Array("version=3.2.0".utf8), Array("role=worker".utf8),
            Array("boot=7f".utf8),
        ])

        let identity = AdvertisedIdentity(instance: "AppReveal-something", kind: .appreveal, txt: txt)

        #expect(identity.app.text == "com.example.shop")
        #expect(identity.appIsBundleID)
        #expect(identity.version?.text == "3.2.0")
        #expect(identity.role.text == "worker")
        #expect(identity.launchID?.text == "7f")
    }

    @Test(arguments: ["AppReveal-com.example.shop", "AppReveal-com.example.shop (2)", "AppReveal-com.example.shop #3"])
    func `AppReveal's instance name gives the bundle identifier if the TXT record has none`(instance: String) {
        let identity = AdvertisedIdentity(instance: instance, kind: .appreveal, txt: TXTRecord())

        #expect(identity.app.text == "com.example.shop")
        #expect(identity.appIsBundleID)
    }

    @Test func `a plain instance name is not taken for a bundle identifier`() {
        let debugger = AdvertisedIdentity(instance: "Anna's Mac", kind: .debug, txt: TXTRecord())
        let odd = AdvertisedIdentity(instance: "AppReveal-a b", kind: .appreveal, txt: TXTRecord())

        #expect(debugger.app.text == "Anna's Mac")
        #expect(!debugger.appIsBundleID)
        #expect(!odd.appIsBundleID)
    }

    @Test func `Flutter's VM service uses the bundle identifier as its name`() {
        let identity = AdvertisedIdentity(instance: "com.example.shop", kind: .dartVM, txt: TXTRecord())

        #expect(identity.appIsBundleID)
    }

    @Test func `a bundle identifier with an escape sequence is rejected, and its control characters are removed`() {
        let txt = TXTRecord(items: [Array("bundleId=com.\u{1B}[31m".utf8), Array("version=\u{202E}1".utf8)])

        let identity = AdvertisedIdentity(instance: "x\u{1B}[2J\ny", kind: .appreveal, txt: txt)

        #expect(!identity.appIsBundleID)
        #expect(identity.app.text == "x\u{FFFD}[2J\u{FFFD}y")
        #expect(identity.version?.text == "\u{FFFD}1")
    }
}
