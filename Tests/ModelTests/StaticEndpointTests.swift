import Model
import Testing

@Suite struct StaticEndpointTests {
    @Test(arguments: ["127.0.0.1", "localhost", "::1", "fe80::1", "::ffff:10.0.0.1"])
    func `a numeric address or localhost can be listed`(address: String) {
        #expect(StaticEndpoint(name: "shop", kind: .tcp, address: address, port: 80).problem == nil)
    }

    @Test(arguments: ["example.com", "256.1.1.1", "1.2.3", "", "evil\u{1B}[2J", "12"])
    func `a name that a resolver would answer cannot`(address: String) {
        #expect(StaticEndpoint(name: "shop", kind: .tcp, address: address, port: 80).problem != nil)
    }

    @Test func `port 0 and an unprintable name are refused in words`() {
        #expect(
            StaticEndpoint(name: "shop", kind: .tcp, address: "::1", port: 0).problem
                == "port 0 cannot be reached by anybody; give the port that the server listens on"
        )
        #expect(StaticEndpoint(name: "a\u{202E}b", kind: .tcp, address: "::1", port: 1).problem != nil)
    }
}
