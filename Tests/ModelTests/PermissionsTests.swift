import FoundationEssentials
import Model
import Testing

@Suite struct PermissionsTests {
    private static func ids(_ texts: String...) -> Selector { .endpoints(Set(texts.compactMap { EndpointID($0) })) }

    @Test func `a selector is a subset of another one only if it can never include more`() {
        let small = Self.ids("a")
        let large = Self.ids("a", "b")
        #expect(small.isSubset(of: large) && small.isSubset(of: .all) && large.isSubset(of: large))
        #expect(!large.isSubset(of: small) && !Selector.all.isSubset(of: large))
        #expect(Selector.bundles(["x"]).isSubset(of: .bundles(["x", "y"])))
        #expect(!small.isSubset(of: .bundles(["a"])) && !Selector.bundles(["a"]).isSubset(of: small))
    }

    @Test func `permissions are a subset only if both scopes and endpoints are`() {
        let wide = Permissions([.registryRead, .endpointCall], on: Self.ids("a", "b"))
        #expect(Permissions([.registryRead], on: Self.ids("a")).isSubset(of: wide))
        #expect(!Permissions([.tunnelOpen], on: Self.ids("a")).isSubset(of: wide))
        #expect(!Permissions([.registryRead], on: .all).isSubset(of: wide))
    }

    @Test(arguments: [Selector.all, ids("b", "a"), .bundles(["com.example.shop"])])
    func `permissions have one JSON form, which decodes to the same value`(selector: Selector) throws {
        let permissions = Permissions([.tunnelOpen, .endpointCall, .admin], on: selector)
        let data = try JSONCoding.encoder().encode(permissions)
        #expect(try JSONCoding.decoder().decode(Permissions.self, from: data) == permissions)
        #expect(String(decoding: data, as: UTF8.self).contains(#"["admin","endpoint.call","tunnel.open"]"#))
    }

    @Test(arguments: [#""some""#, "{}", #"{"endpoints":["A b"]}"#, #"{"endpoints":[],"bundles":[]}"#])
    func `an ambiguous selector is rejected`(text: String) {
        #expect(throws: (any Error).self) { try JSONCoding.decoder().decode(Selector.self, from: Data(text.utf8)) }
    }

    @Test(arguments: [
        AuditActor.broker, .anonymous, .grant("abc"), .process(uid: 1, pid: 2, executable: SanitizedText("/bin/x")),
    ])
    func `an audit actor decodes to the encoded value`(actor: AuditActor) throws {
        #expect(try JSONCoding.decoder().decode(AuditActor.self, from: JSONCoding.encoder().encode(actor)) == actor)
    }
}
