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

    @Test func `a tool filter is a subset of another one only if it can never allow more`() {
        let two = ToolFilter.named(["screenshot", "tap"])
        for filter in [ToolFilter.all, .readOnly, two] {
            #expect(filter.isSubset(of: .all) && filter.isSubset(of: filter))
            #expect(filter == .all || !ToolFilter.all.isSubset(of: filter))
        }
        #expect(!ToolFilter.named(["caf\u{E9}"]).allows("cafe\u{301}", isReadOnly: true))
        #expect(ToolFilter.named(["tap"]).isSubset(of: two) && !two.isSubset(of: .named(["tap"])))
        #expect(!ToolFilter.readOnly.isSubset(of: two) && !two.isSubset(of: .readOnly))
        let limited = Permissions([.endpointCall], on: .all, tools: .readOnly)
        #expect(limited.isSubset(of: Permissions([.endpointCall], on: .all)))
        #expect(!Permissions([.endpointCall], on: .all).isSubset(of: limited))
    }

    @Test(arguments: [
        (ToolFilter.all, #"{"scopes":["endpoint.call"],"selector":"all"}"#),
        (.readOnly, #"{"scopes":["endpoint.call"],"selector":"all","tools":"read-only"}"#),
        (.named(["tap", "get"]), #"{"scopes":["endpoint.call"],"selector":"all","tools":{"named":["get","tap"]}}"#),
    ])
    func `permissions for all tools are encoded as in versions without a tool filter`(
        tools: ToolFilter,
        json: String
    ) throws {
        let permissions = Permissions([.endpointCall], on: .all, tools: tools)
        let data = try JSONCoding.encoder().encode(permissions)
        #expect(String(decoding: data, as: UTF8.self) == json)
        #expect(try JSONCoding.decoder().decode(Permissions.self, from: data) == permissions)
    }

    @Test func `the word all is the same as no tool filter, and another word is rejected`() throws {
        func decode(_ tools: String) throws -> ToolFilter {
            try JSONCoding.decoder().decode(
                Permissions.self,
                from: Data(#"{"scopes":[],"selector":"all","tools":\#(tools)}"#.utf8)
            ).tools
        }
        #expect(try decode(#""all""#) == .all)
        for text in [#""readonly""#, "{}", "[]", "5", #"{"named":"tap"}"#] {
            #expect(throws: (any Error).self) { try decode(text) }
        }
    }

    @Test(arguments: [ToolFilter.readOnly, .named(["tap"])])
    func `a limit to certain tools excludes every scope that bypasses it, even if it is stored`(tools: ToolFilter) {
        let permissions = Permissions(Set(Scope.allCases), on: .all, tools: tools)
        let missing = Scope.allCases.filter { !permissions.allow($0) }
        #expect(Set(missing) == [.tunnelOpen, .shell, .secretRead, .admin])
        #expect(missing.allSatisfy { permissions.exclusion(of: $0)?.contains("\($0.rawValue) would bypass") == true })
        #expect(permissions.exclusion(of: .endpointCall) == nil)
        #expect(Permissions([], on: .all).exclusion(of: .tunnelOpen) == nil)
    }

    @Test func `permissions name their tools, without control characters`() {
        let text = "\(Permissions([.registryRead, .endpointCall], on: .all, tools: .named(["b\u{1B}", "a"])))"
        #expect(text == "endpoint.call, registry.read with the tools a, b\u{FFFD}")
        #expect("\(Permissions([.endpointCall], on: .all))" == "endpoint.call")
        #expect("\(Permissions([.endpointCall], on: .all, tools: .readOnly))" == "endpoint.call with read-only tools")
        #expect("\(ToolFilter.named(["tap"]))" == "the tool tap")
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
