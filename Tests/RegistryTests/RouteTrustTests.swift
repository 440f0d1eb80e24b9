import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

/// Approval belongs to a route, even if the list merges routes into one endpoint.
@Suite struct RouteTrustTests {
    private let phone = UDID.sample
    private let otherPhone: UDID = "0123456789abcdef0123456789abcdef01234567"

    @Test func `a shared port and a shared name are no evidence`() throws {
        for cable in [Seen.usb(udid: phone), Seen.usb("com.example.shop", udid: phone)] {
            for sightings in [[Seen.network(), cable], [cable, Seen.network()]] {
                let table = EndpointTable(sightings)

                #expect(table.endpoints.count == 2)
                #expect(Set(table.endpoints.map(\.approval)) == [.approved, .pending])
            }
        }
    }

    @Test func `two servers with the same launch are one endpoint, and only its USB route is approved`() throws {
        let (advert, cable) = (Seen.network(launchID: "b1"), Seen.usb(udid: phone, launchID: "b1"))
        for sightings in [[advert, cable], [cable, advert]] {
            let table = EndpointTable(sightings)

            let endpoint = try #require(table.endpoints.first)
            #expect(table.endpoints.count == 1)
            #expect(endpoint.routes.map(\.route.machine?.text) == [nil, "iphone.local"])
            #expect(endpoint.routes.map(\.approval) == [.approved, .pending])
            // The advertisement's app name and machine are not taken over by the USB endpoint.
            #expect(endpoint.app.isEmpty)
            #expect(endpoint.approvedApp?.isEmpty == true)
            #expect(endpoint.location.machine == nil)
            #expect(endpoint.txt.entries.isEmpty)
        }
    }

    @Test func `an unplugged device keeps its endpoint, and the advertisement is listed separately`() throws {
        let cable = Seen.usb(udid: phone, launchID: "b1")
        var table = EndpointTable(Seen.network(launchID: "b1"), cable)
        let id = try #require(table.endpoints.first).id

        table.lose(cable.id)

        #expect(table[id]?.state == .offline)
        let advert = try #require(table.endpoints.first { $0.id != id })
        #expect(advert.approval == .pending && advert.approvedApp == nil)

        table.see(cable)
        #expect(table.endpoints.map(\.id) == [id])
    }

    @Test func `an advertisement that no longer reports the USB launch becomes a separate endpoint`() throws {
        var table = EndpointTable(Seen.usb(udid: phone, launchID: "b1"), Seen.network(launchID: "b1"))
        let cabled = try #require(table.endpoints.first).id

        // The app was relaunched, and the forged advertisement still reports the old launch.
        table.see(Seen.usb(udid: phone, launchID: "b2"))
        #expect(table.endpoints.count == 2)
        #expect(table[cabled]?.routes.count == 1)

        table.see(Seen.network(launchID: "b2"))
        #expect(table.endpoints.map(\.id) == [cabled])
    }

    @Test func `an approved address of a USB endpoint stays with it across launches`() throws {
        let cable = Seen.usb("com.example.shop", udid: phone, launchID: "b1")
        var table = EndpointTable(cable, Seen.network(launchID: "b1"))
        let endpoint = try #require(table.endpoints.first)
        _ = table.setTrust(.approving(endpoint), of: endpoint.id, at: now)
        #expect(table[endpoint.id]?.routes.map(\.approval) == [.approved, .approved])

        table.lose(cable.id)
        table.see(Seen.network(port: 5_000, launchID: "b2"))
        #expect(table[endpoint.id]?.approvedRoutes.map(\.port) == [5_000])

        // Another machine with the same names at another address gets a separate endpoint.
        _ = table.apply(
            .seen(Seen.network(port: 5_000, address: "192.168.1.66", name: "other", launchID: "b2")),
            at: now
        )
        #expect(table[endpoint.id]?.approvedRoutes.map(\.route.address) == ["192.168.1.20"])

        // Without the approval only the launch connected them.
        _ = table.setTrust(.none, of: endpoint.id, at: now)
        #expect(table[endpoint.id]?.routes.isEmpty == true)
    }

    @Test func `two devices with the same fixed port are two endpoints, and the advertisement is a third`() throws {
        let (one, two) = (phone, otherPhone)
        let table = EndpointTable(
            Seen.usb(udid: one, launchID: "x"),
            Seen.usb(udid: two, launchID: "x"),
            Seen.network(launchID: "x")
        )

        #expect(table.endpoints.count == 3)
    }

    @Test func `an advertisement that claims a device's UDID does not take over its endpoint`() throws {
        let cable = Seen.usb("com.example.shop", udid: phone)
        var table = EndpointTable(cable)
        let id = try #require(table.endpoints.first).id
        table.lose(cable.id)

        table.see(Seen.network(txt: ["udid=\(phone)", "device=\(phone)"]))

        #expect(table[id]?.state == .offline)
        #expect(table.endpoints.count == 2)
    }

    @Test func `an advertisement that changes its app at an approved address loses the approval`() throws {
        var table = EndpointTable(Seen.network("com.example.shop", name: "one"))
        let endpoint = try #require(table.endpoints.first)
        _ = table.setTrust(.approving(endpoint), of: endpoint.id, at: now)

        table.see(Seen.network("com.example.bank", name: "one"))

        #expect(!table.endpoints.contains { $0.approvedApp?.text == "com.example.bank" })
        #expect(table.endpoints.flatMap(\.approvedRoutes).isEmpty)
    }

    @Test func `a route on which another app answered is changed until the app is lost and seen again`() throws {
        let cable = Seen.usb("com.example.shop", udid: phone)
        var table = EndpointTable(cable)
        let endpoint = try #require(table.endpoints.first)

        _ = table.setMismatch(SanitizedText("com.example.bank"), on: endpoint.routes[0].route, of: endpoint.id)
        #expect(table[endpoint.id]?.approval == .changed)
        #expect(table[endpoint.id]?.approvedRoutes.isEmpty == true)
        table.see(cable)
        #expect(table[endpoint.id]?.approval == .changed)

        table.lose(cable.id)
        table.see(cable)
        #expect(table[endpoint.id]?.approval == .approved)
    }

    @Test func `an advertisement without a dialable address is blocked, with the reason`() throws {
        let advert = Seen.network(kind: .mcp, blocked: "8.8.8.8 is not on the network link")
        let endpoint = try #require(EndpointTable(advert).endpoints.first)

        #expect(endpoint.state == .blocked)
        #expect(endpoint.capabilities == [] && endpoint.limits == [])
        #expect(endpoint.reason == "8.8.8.8 is not on the network link")
        #expect(endpoint.routes.isEmpty)
    }
}
