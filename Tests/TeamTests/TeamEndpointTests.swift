import FoundationEssentials
import Model
import Samples
import Testing

@testable import Team

@Suite struct TeamEndpointTests {
    private func stored(_ endpoint: Endpoint) throws -> [UInt8] {
        try TeamEndpoint(endpoint).bytes(for: .endpoint(endpoint.id, on: try Values.host("lab2")))
    }

    private func text(_ endpoint: Endpoint) throws -> String { String(decoding: try stored(endpoint), as: UTF8.self) }

    /// Returns the endpoint as another host lists it after a round trip through the registry.
    private func listed(_ endpoint: Endpoint) throws -> Endpoint? {
        TeamCoding.value(TeamEndpoint.self, from: try stored(endpoint))?
            .endpoint(endpoint.id, on: try Values.host("lab2"))
    }

    private func fullEndpoint() throws -> Endpoint {
        var endpoint = try Values.endpoint("shop-iphone")
        endpoint.version = SanitizedText("1.2")
        endpoint.location.udid = try Values.udid(1)
        endpoint.reason = "it was busy"
        endpoint.txt.set("platform", to: Array("ios".utf8))
        endpoint.registered = true
        endpoint.server = SanitizedText("com.example.shop")
        endpoint.formerIDs = [try Values.id("shop-old")]
        endpoint.sameLaunchAs = try Values.id("shop-usb")
        endpoint.capabilities = ["tools"]
        endpoint.limits = ["no coordinates"]
        return endpoint
    }

    @Test func `another host lists the endpoint with its host, its IDs in the team, and no routes to dial`() throws {
        let endpoint = try fullEndpoint()

        let listed = try #require(try listed(endpoint))

        #expect(listed.id.text == "shop-iphone.lab2")
        #expect(listed.host == HostStatus(name: try Values.host("lab2")))
        #expect(listed.routes == [])
        #expect(listed.hostRoutes?.map(\.description) == ["192.168.1.20:8080"])
        #expect(listed.formerIDs?.map(\.text) == ["shop-old.lab2"])
        #expect(listed.sameLaunchAs?.text == "shop-usb.lab2")
        #expect(listed.lastSeenAt == nil)
    }

    @Test func `all facts that are shown survive the round trip`() throws {
        let endpoint = try fullEndpoint()

        let listed = try #require(try listed(endpoint))

        #expect(listed.kind == endpoint.kind && listed.app == endpoint.app && listed.name == endpoint.name)
        #expect(listed.version == endpoint.version && listed.location == endpoint.location)
        #expect(listed.state == endpoint.state && listed.reason == endpoint.reason)
        #expect(listed.approval == endpoint.approval && listed.txt == endpoint.txt)
        #expect(listed.sources == endpoint.sources && listed.registered == true && listed.server == endpoint.server)
        #expect(listed.capabilities == endpoint.capabilities && listed.limits == endpoint.limits)
        #expect(listed.firstSeenAt == endpoint.firstSeenAt)
    }

    @Test func `launch IDs, IDs of registrations and leases are not stored`() throws {
        var endpoint = try Values.endpoint("shop")
        endpoint.launchID = SanitizedText("launch-secret")
        endpoint.txt.set("boot", to: Array("launch-secret".utf8))
        let route = NetworkRoute(address: "10.0.0.9", port: 1, registration: "registration-secret")
        endpoint.routes = [EndpointRoute(.network(route), launchID: SanitizedText("launch-secret"))]
        endpoint.lease = Lease(
            id: "l1",
            endpoint: endpoint.id,
            device: nil,
            holder: SanitizedText("holder-secret"),
            isOwn: true,
            note: nil,
            seconds: 1,
            createdAt: Values.date,
            expiresAt: Values.date,
            waiting: 0
        )
        endpoint.possiblySameAs = [try Values.id("hint-secret")]

        #expect(try text(endpoint).contains("secret") == false)
    }

    @Test func `a new sighting without other news does not change the stored form`() throws {
        let (before, after) = (try Values.endpoint("shop", seen: 0), try Values.endpoint("shop", seen: 60))

        #expect(try stored(before) == stored(after))
    }

    @Test func `a long TXT record is truncated, and marked`() throws {
        var endpoint = try Values.endpoint("shop")
        for number in 0..<20 { endpoint.txt.set("key\(number)", to: Array(repeating: UInt8(ascii: "x"), count: 100)) }

        let bytes = try stored(endpoint)
        let listed = try #require(try listed(endpoint))

        #expect(bytes.count <= TeamCoding.valueLimit)
        #expect(bytes.count > TeamCoding.valueLimit - 200)
        #expect(listed.txtTruncated == true)
        #expect(listed.txt.entries == Array(endpoint.txt.entries.prefix(listed.txt.entries.count)))
    }

    @Test func `the largest endpoint fits`() throws {
        var endpoint = try fullEndpoint()
        let long = String(repeating: "\"", count: 300)
        endpoint.app = SanitizedText(long, limit: 155)
        endpoint.name = SanitizedText(long)
        endpoint.reason = long
        endpoint.capabilities = Array(repeating: long, count: 20)
        endpoint.limits = endpoint.capabilities
        endpoint.formerIDs = try (0..<50).map { try Values.id("a-former-id-of-the-endpoint-\($0)") }
        let route = NetworkRoute(
            address: "fe80::1",
            port: 1,
            interface: "wlan0",
            machine: SanitizedText(long, limit: 255)
        )
        endpoint.routes = Array(repeating: EndpointRoute(.network(route), app: endpoint.app), count: 20)

        #expect(try stored(endpoint).count <= TeamCoding.valueLimit)
        #expect(try listed(endpoint) != nil)
    }

    @Test func `a field of a later version is ignored`() throws {
        let text = try text(Values.endpoint("shop")).replacing("{\"app\"", with: "{\"aLaterField\":{\"x\":[1]},\"app\"")

        #expect(text.contains("aLaterField"))
        #expect(TeamCoding.value(TeamEndpoint.self, from: Array(text.utf8)) != nil)
    }

    @Test func `text of another host is safe to print`() throws {
        let text = try text(fullEndpoint()).replacing("it was busy", with: "\\u001b[31m")
            .replacing("192.168.1.20", with: "\\u001b[2J").replacing("no coordinates", with: "\\u202e")
        let stored = try #require(TeamCoding.value(TeamEndpoint.self, from: Array(text.utf8)))

        let listed = stored.endpoint(try Values.id("shop"), on: try Values.host("lab2"))

        let shown = "\(listed.reason ?? "") \(listed.hostRoutes ?? []) \(listed.limits ?? [])"
        #expect(shown.unicodeScalars.allSatisfy(SanitizedText.isSafe))
    }
}
