import FoundationEssentials
import Model
import Testing

/// Grants that name hosts of a team, and the form of a grant for the broker of another host.
@Suite struct SelectorHostTests {
    private static func hosts(_ texts: String...) -> Set<HostName> { Set(texts.compactMap { HostName($0) }) }
    private static func ids(_ texts: String...) -> Set<EndpointID> { Set(texts.compactMap { EndpointID($0) }) }
    private let lab1: HostName
    private let lab2: HostName

    init() throws {
        lab1 = try #require(HostName("lab1"))
        lab2 = try #require(HostName("lab2"))
    }

    @Test(arguments: [
        ("shop.lab2", "lab1", true), ("shop.lab3", "lab1", false), ("shop", "lab1", false), ("shop", "lab2", true),
        ("shop", "", false),
    ])
    func `a grant for a host includes the endpoints of that host, also of the own one by its name`(
        id: String,
        own: String,
        isIncluded: Bool
    ) throws {
        let id = try #require(EndpointID(id))
        #expect(Selector.hosts(Self.hosts("lab2")).includes(id, approvedApp: nil, on: HostName(own)) == isIncluded)
    }

    @Test func `a grant for an endpoint may name the own host`() throws {
        let selector = Selector.endpoints(Self.ids("shop.lab1", "shop.lab2"))
        let shop = try #require(EndpointID("shop"))
        #expect(selector.includes(shop, approvedApp: nil, on: lab1))
        #expect(!selector.includes(shop, approvedApp: nil))
        #expect(!selector.includes(shop, approvedApp: nil, on: HostName("lab3")))
        #expect(!Selector.endpoints(Self.ids("shop")).includes(shop.on(lab2), approvedApp: nil, on: lab1))
    }

    @Test func `a grant for endpoints is a subset of one for their hosts`() {
        let hosts = Selector.hosts(Self.hosts("lab1", "lab2"))
        #expect(Selector.hosts(Self.hosts("lab1")).isSubset(of: hosts) && hosts.isSubset(of: .all))
        #expect(Selector.endpoints(Self.ids("a.lab1", "b.lab2")).isSubset(of: hosts))
        #expect(!Selector.endpoints(Self.ids("a.lab3")).isSubset(of: hosts))
        #expect(!Selector.endpoints(Self.ids("a")).isSubset(of: hosts))
        #expect(!hosts.isSubset(of: .hosts(Self.hosts("lab1"))) && !Selector.all.isSubset(of: hosts))
    }

    @Test(arguments: [
        (Selector.all, Selector.all), (.bundles(["com.example.shop"]), .bundles(["com.example.shop"])),
        (.endpoints(ids("a.lab2", "b.lab3", "c")), .endpoints(ids("a"))), (.hosts(hosts("lab2")), .all),
        (.hosts(hosts("lab3")), .endpoints([])),
    ])
    func `another host gets the selector with its own IDs, and never more than the grant has`(
        selector: Selector,
        asserted: Selector
    ) { #expect(selector.asserted(to: lab2) == asserted) }

    @Test func `scopes of the own host are not asserted to another one`() {
        let asserted = Permissions(Set(Scope.allCases), on: .all).asserted(to: lab2)
        #expect(asserted.scopes == [.registryRead, .endpointCall, .tunnelOpen, .secretUse, .shell])
    }

    @Test func `a selector of hosts has one JSON form`() throws {
        let selector = Selector.hosts(Self.hosts("lab2", "lab1"))
        let data = try JSONCoding.encoder().encode(selector)
        #expect(String(decoding: data, as: UTF8.self) == #"{"hosts":["lab1","lab2"]}"#)
        #expect(try JSONCoding.decoder().decode(Selector.self, from: data) == selector)
    }

    @Test(arguments: [#"{"hosts":["Lab 1"]}"#, #"{"hosts":["a"],"bundles":["b"]}"#, "{}", #""none""#])
    func `any other form is refused`(json: String) {
        #expect(throws: DecodingError.self) { try JSONCoding.decoder().decode(Selector.self, from: Data(json.utf8)) }
    }
}

/// The header that names the client of another host's broker.
@Suite struct TeamCallerHeaderTests {
    private func caller(_ holder: String = "uid:1000", endpoints: Int = 1) -> TeamCaller {
        let ids = (0..<endpoints).compactMap { EndpointID("endpoint-number-\($0)") }
        return TeamCaller(
            holder: holder,
            name: SanitizedText("user 1000"),
            isAgent: false,
            permissions: Permissions([.registryRead], on: .endpoints(Set(ids)))
        )
    }

    @Test func `a caller is the same after the header`() throws {
        let value = try #require(caller().headerValue)
        #expect(TeamCaller(headerValue: value) == caller())
        #expect(value.utf8.allSatisfy { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "/") })
    }

    @Test func `a caller that does not fit has no header`() { #expect(caller(endpoints: 200).headerValue == nil) }

    @Test func `a text that is no caller is refused`() throws {
        let value = try #require(caller().headerValue)
        let texts = ["", "e30", value + "=", value + " ", String(value.dropLast(4)), "{}", "\(value)\(value)"]
        for text in texts { #expect(TeamCaller(headerValue: text) == nil, "\(text)") }
        let long = try #require(caller(String(repeating: "x", count: 257)).headerValue)
        #expect(TeamCaller(headerValue: long) == nil)
        let control = try #require(caller("uid:\n1").headerValue)
        #expect(TeamCaller(headerValue: control) == nil)
        #expect(TeamCaller(headerValue: String(repeating: "A", count: 5_000)) == nil)
    }
}
