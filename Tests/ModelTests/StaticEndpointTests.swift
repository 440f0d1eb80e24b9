import Model
import Testing

@Suite struct StaticEndpointTests {
    @Test(arguments: ["127.0.0.1", "localhost", "::1", "fe80::1", "::ffff:10.0.0.1"])
    func `a numeric address and localhost are valid`(address: String) {
        #expect(StaticEndpoint(name: "shop", kind: .tcp, address: address, port: 80).validationError == nil)
    }

    @Test(arguments: ["example.com", "256.1.1.1", "1.2.3", "", "evil\u{1B}[2J", "12"])
    func `host names and malformed addresses are invalid`(address: String) {
        #expect(StaticEndpoint(name: "shop", kind: .tcp, address: address, port: 80).validationError != nil)
    }

    @Test func `port 0 and an unprintable name are invalid, with the reason`() {
        #expect(
            StaticEndpoint(name: "shop", kind: .tcp, address: "::1", port: 0).validationError
                == "port 0 is not reachable; give the port on which the server listens"
        )
        #expect(StaticEndpoint(name: "a\u{202E}b", kind: .tcp, address: "::1", port: 1).validationError != nil)
    }
}
