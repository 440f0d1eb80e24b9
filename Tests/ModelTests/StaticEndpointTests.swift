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

    @Test func `an unknown kind is an error with the kinds that exist and the nearest`() throws {
        let kinds: [EndpointKind] = [.tcp, .appreveal, EndpointKind("my-server")]

        #expect(EndpointKind("my-server").validationError(among: kinds) == nil)
        let near = try #require(EndpointKind("appreveel").validationError(among: kinds))
        #expect(near.nearest == .appreveal)
        #expect(
            near.message
                == #"there is no kind "appreveel"; did you mean "appreveal"? The kinds are appreveal, my-server, tcp; for any other server use tcp"#
        )
        let other = try #require(EndpointKind("x").validationError(among: kinds))
        #expect(other.nearest == nil)
        #expect(
            other.message
                == #"there is no kind "x"; the kinds are appreveal, my-server, tcp; for any other server use tcp"#
        )
    }

    @Test func `port 0 and an unprintable name are invalid, with the reason`() {
        #expect(
            StaticEndpoint(name: "shop", kind: .tcp, address: "::1", port: 0).validationError?.message
                == "port 0 is not reachable; give the port on which the server listens"
        )
        #expect(StaticEndpoint(name: "a\u{202E}b", kind: .tcp, address: "::1", port: 1).validationError != nil)
    }
}
