import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

/// Apps that registered themselves, alone and beside other evidence of the same launch.
@Suite struct RegisteredAppTests {
    private var table = EndpointTable()

    private func app(
        grant: String = "G1",
        id: String = "r1",
        at address: String = "10.0.0.2",
        port: UInt16 = 4_000,
        launchID: String? = "one"
    ) -> Sighting {
        .sample(
            source: .registration,
            key: "\(grant)/appreveal/com.example.shop/anna's iphone",
            machine: "Anna's iPhone",
            routes: [.network(NetworkRoute(address: address, port: port, registration: id))],
            launchID: launchID
        )
    }

    private func advert(launchID: String? = "one", port: UInt16 = 4_000, address: String = "10.0.0.9") -> Sighting {
        Seen.network(port: port, address: address, launchID: launchID)
    }

    @Test mutating func `a registered app is approved from the start and named after its device`() throws {
        table.see(app())
        let endpoint = try #require(table.endpoints.first)
        #expect(endpoint.approval == .approved && endpoint.state == .online)
        #expect(endpoint.sources == [.registration] && endpoint.location.machine == SanitizedText("Anna's iPhone"))
        #expect(endpoint.id.text == "shop-annas-iphone")
    }

    @Test mutating func `a relaunch at another address and port keeps the ID`() throws {
        table.see(app())
        let id = try #require(table.endpoints.first?.id)
        table.see(app(id: "r2", at: "10.0.0.3", port: 4_001, launchID: "two"))
        #expect(table.endpoints.map(\.id) == [id])
        #expect(table.endpoints.flatMap(\.routes).map(\.description) == ["10.0.0.3:4001"])

        table.lose(app().id)
        #expect(table[id]?.state == .offline && table[id]?.reason == "its registration has ended")
        table.see(app(id: "r3", launchID: "three"))
        #expect(table.endpoints.map(\.id) == [id] && table[id]?.state == .online)
    }

    @Test mutating func `another grant gets another endpoint, also after the first app is gone`() throws {
        table.see(app())
        let id = try #require(table.endpoints.first?.id)
        table.lose(app().id)
        table.see(app(grant: "G2", id: "r2"))
        #expect(table.endpoints.count == 2 && table[id]?.state == .offline)

        _ = try table.removeUnseen(id)
        table.see(app(grant: "G3", id: "r3"))
        #expect(table[id] == nil)
    }

    @Test mutating func `an app that registered itself is marked, also while it is away and after a restart`() {
        table.see(app(), advert(launchID: "other"))
        #expect(table.endpoints.map { $0.registered == true } == table.endpoints.map { $0.sources == [.registration] })
        table.lose(app().id)
        #expect(table.endpoints.count { $0.registered == true } == 1)
        let restarted = EndpointTable(records: table.records)
        #expect(restarted.endpoints.map(\.registered) == table.endpoints.map(\.registered))
    }

    @Test(arguments: [true, false])
    mutating func `an advert of the same launch is shown with the registration, and stays unapproved`(
        isAdvertFirst: Bool
    ) throws {
        table.see(isAdvertFirst ? [advert(), app()] : [app(), advert()])
        let endpoint = try #require(table.endpoints.first)
        #expect(table.endpoints.count == 1)
        #expect(endpoint.sources == [.bonjour, .registration])
        #expect(endpoint.approvedRoutes.map(\.description) == ["10.0.0.2:4000"])
        #expect(endpoint.routes.filter { !$0.isApproved }.map(\.description) == ["10.0.0.9:4000"])
    }

    @Test(arguments: [(nil, 4_000), ("other", 4_000), ("one", 4_001)] as [(String?, UInt16)])
    mutating func `an advert of another launch or port stays separate`(launchID: String?, port: UInt16) {
        table.see(app(), advert(launchID: launchID, port: port))
        #expect(table.endpoints.count == 2)
    }

    @Test mutating func `an advert of the registered address is not listed beside the registration`() {
        table.see(app(), advert(address: "10.0.0.2"))
        #expect(table.endpoints.flatMap(\.routes).compactMap(\.route.registration) == ["r1"])
        #expect(table.endpoints.flatMap(\.routes).count == 1)
    }

    @Test mutating func `the advert is separate again when the registration ends`() throws {
        table.see(app())
        let id = try #require(table.endpoints.first?.id)
        table.see(advert())
        table.lose(app().id)
        #expect(table[id]?.state == .offline)
        let other = try #require(table.endpoints.first { $0.id != id })
        #expect(other.approval == .pending && other.sources == [.bonjour])
    }

    @Test mutating func `the endpoint on the cable and the registration of one launch are shown as one`() throws {
        table.see(Seen.usb("com.example.shop", udid: .sample, launchID: "one"), app())
        let cabled = try #require(table.endpoints.first { $0.sources == [.usbmuxd] })
        let registered = try #require(table.endpoints.first { $0.sources == [.registration] })
        #expect(registered.sameLaunchAs == cabled.id)
        #expect(table.endpoints.combined.map(\.sources) == [[.registration, .usbmuxd]])
    }

    @Test mutating func `an advert of a launch on the cable and of a registration belongs to the cable`() throws {
        table.see(app(), Seen.usb("com.example.shop", udid: .sample, launchID: "one"), advert())
        #expect(Set(table.endpoints.map(\.sources)) == [[.registration], [.bonjour, .usbmuxd]])
    }

    @Test mutating func `the approval of a cabled endpoint does not move a registration to it`() throws {
        table.see(Seen.usb("com.example.shop", udid: .sample, launchID: "one"))
        let cabled = try #require(table.endpoints.first)
        table.see(advert())
        let joined = try #require(table[cabled.id])
        _ = table.setTrust(.approving(joined), of: cabled.id, at: now)
        table.see(app(at: "10.0.0.9"))
        #expect(table.endpoints.contains { $0.sources == [.registration] })
    }

    @Test func `a secret of a registration is for that registration and that launch alone`() throws {
        let route = try #require(app().routes.first)
        let current = EndpointRoute(route, launchID: SanitizedText("one"))
        let binding = try #require(ApprovalPolicy.secretBinding(for: current, nil))
        let trust = EndpointTrust(secret: [binding])
        #expect(ApprovalPolicy.maySendSecret(over: current, trust))
        let relaunched = EndpointRoute(route, launchID: SanitizedText("two"))
        #expect(!ApprovalPolicy.maySendSecret(over: relaunched, trust))
        let later = try #require(app(id: "r2").routes.first)
        #expect(!ApprovalPolicy.maySendSecret(over: EndpointRoute(later, launchID: SanitizedText("one")), trust))
        let configured = Route.network("10.0.0.2")
        let other = EndpointRoute(configured, launchID: SanitizedText("one"))
        #expect(!ApprovalPolicy.maySendSecret(over: other, trust))
    }
}
