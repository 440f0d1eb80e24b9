import FoundationEssentials
import Model
import Testing

@Suite struct FormattingTests {
    @Test(arguments: [
        ("00008030001a2b3c4d5e6f70", "00008030-001A2B3C4D5E6F70"),
        ("00008030-001A2B3C4D5E6F70", "00008030-001A2B3C4D5E6F70"),
        ("0123456789ABCDEF0123456789ABCDEF01234567", "0123456789abcdef0123456789abcdef01234567"),
    ])
    func `all spellings of a UDID have one normal form`(raw: String, normal: String) {
        #expect(UDID(raw)?.text == normal)
    }

    @Test(arguments: ["", "xyz", "00008030", "00008030-001A2B3C4D5E6F7G", String(repeating: "a", count: 41)])
    func `other text than a UDID is rejected`(raw: String) { #expect(UDID(raw) == nil) }

    @Test(arguments: ["_appreveal._tcp", "_DEBUG._TCP", "_a2b._udp", "_flutter_devices._tcp"])
    func `service types are parsed without case`(raw: String) { #expect(ServiceType(raw)?.text == raw.lowercased()) }

    @Test(arguments: [
        "appreveal._tcp", "_x._tcp", "_a b._tcp", "_ab", "_ab._sctp", "_-ab._tcp", "__ab._tcp", "_ab_._tcp",
        "_a.b._tcp", "_123._tcp", "._tcp", "",
    ])
    func `other text than a service type is rejected`(raw: String) { #expect(ServiceType(raw) == nil) }

    @Test(arguments: [
        ("8080", "tcp:8080"), ("tcp:0", "tcp:0"), ("127.0.0.1:80", "tcp:127.0.0.1:80"),
        ("tcp:[::1]:80", "tcp:[::1]:80"),
        ("unix:/tmp/x", "unix:/tmp/x"),
    ])
    func `local addresses are parsed from every notation and printed in one`(raw: String, normal: String) {
        #expect(ListenAddress(raw)?.description == normal)
        #expect(ListenAddress(normal) == ListenAddress(raw))
    }

    @Test(arguments: [
        "", "65536", "-1", "tcp:", "tcp:x:y", "unix:relative", "::1:80", "tcp:a:b:1", ":80", "8080x", "unix:/\u{1B}[2J",
        "a\u{202E}:1",
    ])
    func `other text than a local address is rejected`(raw: String) { #expect(ListenAddress(raw) == nil) }

    @Test func `an endpoint ID is readable, valid and at most 40 bytes long`() {
        #expect(
            EndpointID(app: SanitizedText("com.example.Shop App"), location: "Test-iPhone").text
                == "shop-app-test-iphone"
        )
        #expect(EndpointID(app: SanitizedText("com.example.shop"), location: "mac", attempt: 2).text == "shop-mac-2")
        #expect(EndpointID(app: SanitizedText("面談"), location: "").text == "endpoint")
        let long = EndpointID(app: SanitizedText(String(repeating: "a", count: 63)), location: "b", attempt: 17)
        #expect(long.text.utf8.count == EndpointID.lengthLimit)
        #expect(long.text.hasSuffix("-17"))
        #expect(EndpointID(long.text) == long)
    }

    @Test(arguments: [
        ("Ünï 😀", "uni"), ("Größe", "grosse"), ("Łódź", "lodz"), ("ǖ ệ", "u-e"), ("E\u{301}cole", "ecole"),
        ("Æsir", "aesir"),
        ("😀", "endpoint"), ("Shop 1️⃣", "shop-1"),
    ])
    func `an endpoint ID has the letters that people can type`(name: String, id: String) {
        #expect(EndpointID(app: SanitizedText(name), location: "").text == id)
    }

    @Test func `the target of a tunnel has a short JSON form`() throws {
        let udid = try #require(UDID("00008030-001A2B3C4D5E6F70"))
        let targets: [TunnelTarget] = [
            .device(udid: udid, port: 9_876), .endpoint(try #require(EndpointID("shop-iphone"))),
        ]

        let json = String(decoding: try JSONCoding.encoder().encode(targets), as: UTF8.self)

        #expect(json == #"[{"device":{"port":9876,"udid":"00008030-001A2B3C4D5E6F70"}},{"endpoint":"shop-iphone"}]"#)
        #expect(try JSONCoding.decoder().decode([TunnelTarget].self, from: Data(json.utf8)) == targets)
    }
}
