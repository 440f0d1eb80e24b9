import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

/// The mention "possibly the same app" at endpoints on the cable and on the network.
@Suite struct SameAppHintTests {
    private let phone = UDID.sample
    private let name = SanitizedText("Anna’s iPhone")

    /// A table with the phone's name and these sightings.
    private func table(_ sightings: Sighting...) -> EndpointTable {
        var table = EndpointTable()
        _ = table.setDeviceNames([phone: name])
        table.see(sightings)
        return table
    }

    private func hints(_ table: EndpointTable) -> [String: [String]] {
        Dictionary(
            uniqueKeysWithValues: table.endpoints.compactMap { endpoint in
                endpoint.possiblySameAs.map { (endpoint.id.text, $0.map(\.text)) }
            }
        )
    }

    @Test func `a cabled app and its advertisement mention each other if the phone's name is the machine's name`() {
        let (cable, advert) = (Seen.usb("com.example.shop", udid: phone), Seen.network(machine: "Annas-iPhone-2.local"))
        for sightings in [[cable, advert], [advert, cable]] {
            var table = table()
            table.see(sightings)

            #expect(table.endpoints.count == 2)
            let ids = Set(table.endpoints.map(\.id.text))
            let hints = hints(table)
            #expect(Set(hints.keys) == ids)
            for (id, other) in hints { #expect(Set(other) == ids.subtracting([id])) }
        }
    }

    @Test func `another app, kind or machine is not mentioned, and neither is an app without a name`() {
        #expect(hints(table(Seen.usb("com.example.shop", udid: phone), Seen.network(machine: "iphone.local"))).isEmpty)
        let machine = "annas-iphone.local"
        let bank = Seen.network("com.example.bank", machine: machine)
        #expect(hints(table(Seen.usb("com.example.shop", udid: phone), bank)).isEmpty)
        let mcp = Seen.network(machine: machine, kind: .mcp)
        #expect(hints(table(Seen.usb("com.example.shop", udid: phone), mcp)).isEmpty)
        #expect(hints(table(Seen.usb(udid: phone), Seen.network("", machine: machine))).isEmpty)
    }

    @Test func `the mention ends with the advertisement, and begins when the phone tells its name`() {
        let (cable, advert) = (Seen.usb("com.example.shop", udid: phone), Seen.network(machine: "annas-iphone.local"))
        var table = EndpointTable([cable, advert])
        #expect(hints(table).isEmpty)

        let named = table.setDeviceNames([phone: name])
        #expect(hints(table).count == 2)
        #expect(named.contains { $0.endpoint.possiblySameAs != nil })

        let changes = table.lose(advert.id)
        #expect(hints(table).isEmpty)
        #expect(changes.count == 2, "the advertisement is offline, and the cabled app mentions nothing")
    }

    @Test func `an approved advertisement with the launch of a cabled app stays separate and is mentioned`() throws {
        var table = table(Seen.network(launchID: "b1"))
        let wireless = try #require(table.endpoints.first)
        _ = table.setTrust(.approving(wireless), of: wireless.id, at: now)

        table.see(Seen.usb(udid: phone, launchID: "b1"))

        let cabled = try #require(table.endpoints.first { $0.id != wireless.id })
        #expect(hints(table) == [wireless.id.text: [cabled.id.text], cabled.id.text: [wireless.id.text]])
        #expect(table[wireless.id]?.approvedRoutes.count == 1)
        #expect(cabled.routes.count == 1)
    }

    @Test func `a forged advertisement with the phone's machine name changes only the mention of the cabled app`()
        throws
    {
        let cable = Seen.usb("com.example.shop", udid: phone, launchID: "b1")
        var table = table(cable)
        let before = try #require(table.endpoints.first)
        let secret = try #require(ApprovalPolicy.secretBinding(for: before.routes[0], nil))
        let trust = EndpointTrust(secret: [secret])
        _ = table.setTrust(trust, of: before.id, at: now)
        let trusted = try #require(table[before.id])

        for address in 1...9 {
            let machine = "annas-iphone-\(address).local"
            let forged = Seen.network(machine: machine, address: "192.168.1.\(address)", txt: ["udid=\(phone)"])
            table.see(forged)
        }

        var after = try #require(table[before.id])
        #expect(after.possiblySameAs?.count == SameAppHints.limit)
        after.possiblySameAs = nil
        #expect(after == trusted)
        for forged in table.endpoints where forged.id != before.id {
            #expect(forged.possiblySameAs == [before.id])
            #expect(forged.approval == .pending)
            #expect(!forged.routes.contains { $0.isApproved || $0.isSecretHeld })
            #expect(ApprovalPolicy.approvedRoutes(of: forged, nil).isEmpty)
        }
    }

    @Test func `mentions are not restored for endpoints that were not seen since the start`() {
        let table = table(Seen.usb("com.example.shop", udid: phone), Seen.network(machine: "annas-iphone.local"))
        #expect(hints(table).count == 2)

        #expect(hints(EndpointTable(records: table.records)).isEmpty)
    }
}
