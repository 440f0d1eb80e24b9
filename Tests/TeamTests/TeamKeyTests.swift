import AccessControl
import Model
import Samples
import Testing

@testable import Team

@Suite struct TeamKeyTests {
    @Test func `every key has its documented form, and is parsed again`() throws {
        let host = try Values.host("lab1")
        let udid = try Values.udid(7)
        let forms: [TeamKey: String] = [
            .meta: "/patchbay/v1/meta",
            .member(host): "/patchbay/v1/member/lab1",
            .host(host): "/patchbay/v1/host/lab1",
            .endpoint(try Values.id("shop-iphone"), on: host): "/patchbay/v1/ep/lab1/shop-iphone",
            .device(udid, .network, on: host): "/patchbay/v1/dev/lab1/\(udid).network",
            .claim(.device(udid)): "/patchbay/v1/claim/device-\(udid)",
            .claim(.endpoint(try Values.id("shop-mac.lab1"))): "/patchbay/v1/claim/endpoint-shop-mac.lab1",
        ]
        for (key, text) in forms {
            #expect(key.text == text)
            #expect(TeamKey(text) == key)
        }
    }

    @Test(arguments: [
        "", "/patchbay/v2/meta", "/patchbay/v1/", "/patchbay/v1/member/", "/patchbay/v1/member/LAB",
        "/patchbay/v1/host/a/b",
        "/patchbay/v1/ep/lab1", "/patchbay/v1/ep/lab1/shop.lab1", "/patchbay/v1/dev/lab1/x.usb",
        "/patchbay/v1/claim/endpoint-shop", "/patchbay/v1/claim/other-shop.lab1", "/patchbay/v1/later/lab1",
    ])
    func `an unknown key is ignored`(text: String) { #expect(TeamKey(text) == nil) }

    @Test func `a key with another spelling of a UDID is ignored`() throws {
        let text = TeamKey.claim(.device(UDID("00008030-001A2B3C4D5E6F70"))).text
        #expect(TeamKey(text) != nil)
        #expect(TeamKey(text.replacing("00008030-", with: "00008030")) == nil)
    }

    @Test func `the prefix of a host has no entries of a host with a longer name`() throws {
        let other = TeamKey.endpoint(try Values.id("shop"), on: try Values.host("lab10"))
        #expect(!other.text.hasPrefix(TeamKey.endpoints(of: try Values.host("lab1"))))
    }
}
