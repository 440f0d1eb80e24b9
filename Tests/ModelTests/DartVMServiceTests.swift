import FoundationEssentials
import Model
import Testing

@Suite struct DartVMServiceTests {
    @Test func `the URLs have the forms that Flutter's tools print and accept`() throws {
        let code = try #require(DartAuthCode("EMYU73JbR-A=")).reveal()

        let service = DartVMService(at: "127.0.0.1:8181", authCode: code)

        #expect(service.http == "http://127.0.0.1:8181/EMYU73JbR-A=/")
        #expect(service.webSocket == "ws://127.0.0.1:8181/EMYU73JbR-A=/ws")
    }

    @Test func `a service without a code has URLs without a path`() {
        let service = DartVMService(at: "127.0.0.1:8181", authCode: nil)

        #expect([service.http, service.webSocket] == ["http://127.0.0.1:8181/", "ws://127.0.0.1:8181/ws"])
    }

    @Test func `an IPv6 address is in brackets, and its interface is escaped`() {
        let route = Route.network(NetworkRoute(address: "fe80::1", port: 81, interface: "wlan0", interfaceIndex: 3))

        #expect(DartVMService(at: route, authCode: "a")?.http == "http://[fe80::1%25wlan0]:81/a/")
    }

    @Test func `a port of a phone has no URL`() throws {
        let udid = try #require(UDID("00008030-001A2B3C4D5E6F70"))

        #expect(DartVMService(at: .usb(USBRoute(udid: udid, port: 81)), authCode: "a") == nil)
    }

    @Test(arguments: [("EMYU73JbR-A=", "EMYU73JbR-A="), ("EMYU73JbR-A=/", "EMYU73JbR-A="), ("a.b~c_d", "a.b~c_d")])
    func `a code is accepted with and without its slash`(text: String, code: String) {
        #expect(DartAuthCode(text)?.reveal() == code)
    }

    @Test(arguments: [
        "", "/", ".", "..", "../", "a/b", "a b", "a?b", "a#b", "a%2Fb", "a\n", "é", String(repeating: "a", count: 129),
    ])
    func `text that would change the URL is not a code`(text: String) { #expect(DartAuthCode(text) == nil) }

    @Test func `printing and dumping a code does not show the code`() throws {
        let code = try #require(DartAuthCode("geheim"))
        var dumped = ""
        dump(code, to: &dumped)

        #expect(!"\(code)\(String(reflecting: code))\(dumped)".contains("geheim"))
    }
}
