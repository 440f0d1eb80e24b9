import FoundationEssentials
import Model
import Testing

/// IDs and endpoints of a team.
@Suite struct EndpointIDTests {
    @Test func `an ID with a host has two parts, and each is found again`() throws {
        let host = try #require(HostName("lab2"))
        let id = try #require(EndpointID("shop-iphone.lab2"))

        #expect(id.namesHost && id.host == host)
        #expect(id.onItsHost == EndpointID("shop-iphone") && id.onItsHost.on(host) == id)
        #expect(id.on(host) == id)
        let local = try #require(EndpointID("shop-iphone"))
        #expect(!local.namesHost && local.host == nil && local.onItsHost == local)
    }

    @Test(arguments: [
        "", ".", "shop.", ".lab2", "shop.lab2.x", "shop..lab2", "Shop.lab2", "shop.Lab2", "shop.läb", "shop lab2",
        "shop.lab_2",
    ])
    func `a text that is no ID is refused`(text: String) { #expect(EndpointID(text) == nil) }

    @Test func `both parts have a limit`() {
        let (id, host) = (String(repeating: "i", count: 40), String(repeating: "h", count: 32))
        #expect(EndpointID("\(id).\(host)") != nil)
        #expect(EndpointID("\(id)i.\(host)") == nil && EndpointID("\(id).\(host)h") == nil)
        #expect(HostName(host) != nil && HostName(host + "h") == nil && HostName("") == nil)
    }

    @Test func `the name of a host begins with a letter or a digit`() {
        #expect(HostName("-x") == nil && HostName("-") == nil && EndpointID("shop.-x") == nil)
        #expect(HostName("x-") != nil && HostName("1-x") != nil)
    }

    @Test func `IDs are sorted by text, so the endpoints of an app are listed together`() {
        let ids = ["shop-iphone.lab2", "till", "shop-iphone", "shop-iphone.lab1", "shop"].compactMap { EndpointID($0) }
        #expect(ids.sorted().map(\.text) == ["shop", "shop-iphone", "shop-iphone.lab1", "shop-iphone.lab2", "till"])
    }

    @Test func `an ID with a host is decoded, and an invalid one is an error`() throws {
        let decoder = JSONCoding.decoder()
        #expect(try decoder.decode([EndpointID].self, from: Data(#"["a.b"]"#.utf8)).map(\.text) == ["a.b"])
        #expect(throws: DecodingError.self) { try decoder.decode([EndpointID].self, from: Data(#"["a.b.c"]"#.utf8)) }
        #expect(throws: DecodingError.self) { try decoder.decode([HostName].self, from: Data(#"["a.b"]"#.utf8)) }
    }

    @Test func `an endpoint of another host has no route that this broker could dial, and names its host in every ID`()
        throws
    {
        let (shop, other) = (try #require(EndpointID("shop")), try #require(EndpointID("other")))
        let host = try #require(HostName("lab2"))
        var endpoint = Endpoint(
            id: shop,
            kind: .appreveal,
            app: SanitizedText("com.example.shop"),
            name: SanitizedText("Shop"),
            state: .online,
            approval: .approved,
            routes: [EndpointRoute(.network(NetworkRoute(address: "192.168.1.20", port: 4_000)), approval: .approved)],
            firstSeenAt: Date(timeIntervalSince1970: 0),
            lastSeenAt: nil
        )
        (endpoint.formerIDs, endpoint.possiblySameAs, endpoint.sameLaunchAs) = ([other], [other], other)
        endpoint.combinedWith = [endpoint]

        let remote = endpoint.on(host)

        #expect(remote.id.text == "shop.lab2" && remote.isOnOtherHost)
        #expect(remote.routes.isEmpty && remote.approvedRoutes.isEmpty)
        #expect(remote.hostRoutes == endpoint.routes && remote.shownRoutes == endpoint.routes)
        #expect(remote.host == HostStatus(name: host) && remote.approval == .approved)
        #expect(remote.formerIDs?.first?.text == "other.lab2" && remote.possiblySameAs?.first?.text == "other.lab2")
        #expect(remote.sameLaunchAs?.text == "other.lab2" && remote.combinedWith == nil)
        #expect(remote.on(host) == remote)

        let data = try JSONCoding.encoder().encode(remote)
        #expect(try JSONCoding.decoder().decode(Endpoint.self, from: data) == remote)
    }

    @Test func `an endpoint of this host is called by its ID alone or with the name of this host`() throws {
        let endpoint = Endpoint(
            id: try #require(EndpointID("shop")),
            kind: .tcp,
            app: SanitizedText(""),
            name: SanitizedText(""),
            state: .online,
            approval: .approved,
            firstSeenAt: Date(timeIntervalSince1970: 0),
            lastSeenAt: nil
        )
        let listed = endpoint.listed(on: try #require(HostName("lab1")))

        #expect(listed.isCalled("shop") && listed.isCalled("shop.lab1") && !listed.isCalled("shop.lab2"))
        #expect(!listed.isOnOtherHost && listed.hostRoutes == nil)
        #expect(endpoint.isCalled("shop") && !endpoint.isCalled("shop.lab1"))
    }
}
