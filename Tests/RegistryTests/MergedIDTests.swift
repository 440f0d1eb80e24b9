import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

/// The ID of an advertisement that turns out to be the app on a cable.
@Suite struct MergedIDTests {
    private let wireless = EndpointID("shop-iphone")
    private let phone = UDID.sample

    @Test func `the ID of a listed advertisement leads to the cabled app with which it is merged`() throws {
        let advert = Seen.network(launchID: "b1")
        var table = EndpointTable(advert)
        #expect(table.endpoints.map(\.id) == [wireless])

        let cable = Seen.usb("com.example.shop", udid: phone, launchID: "b1")
        let changes = table.see(cable)
        let cabled = try #require(table.endpoints.first)
        #expect(table.endpoints.count == 1)
        #expect(cabled.id.text == "shop-phone-5e6f70")
        #expect(changes.contains { $0 == .removed($0.endpoint) && $0.endpoint.id == wireless })
        #expect(table[wireless]?.id == cabled.id)
        #expect(cabled.formerIDs == [wireless] && cabled.isCalled("shop-iphone"))
        #expect(EndpointTable(records: table.records, retired: table.retired)[wireless]?.id == cabled.id)

        // The evidence ends with the cable, and the advertisement gets its own ID back.
        table.lose(cable.id)
        #expect(table[wireless]?.id == wireless)
        #expect(table[wireless]?.state == .online)
        #expect(table[cabled.id]?.state == .offline && table[cabled.id]?.formerIDs == nil)
        #expect(table.records.allSatisfy { $0.formerIDs?.isEmpty ?? true })

        table.see(cable)
        #expect(table[wireless]?.id == cabled.id)
    }

    @Test func `an offline advertisement that returns with the launch of a cabled app leaves no second endpoint`()
        throws
    {
        let advert = Seen.network(launchID: "b1")
        var table = EndpointTable(advert)
        table.lose(advert.id)
        table.see(Seen.usb("com.example.shop", udid: phone, launchID: "b2"))
        #expect(table.endpoints.count == 2)

        table.see(Seen.network(port: 4_000, launchID: "b2"))

        #expect(table.endpoints.map(\.id.text) == ["shop-phone-5e6f70"])
        #expect(table[wireless]?.id.text == "shop-phone-5e6f70")
    }

    @Test func `after a restart the advertisement gets its own ID back when the phone is gone`() throws {
        let cable = Seen.usb("com.example.shop", udid: phone, launchID: "b1")
        let before = EndpointTable(Seen.network(launchID: "b1"), cable)
        #expect(before.endpoints.count == 1)

        var after = EndpointTable(records: before.records, retired: before.retired)
        after.see(Seen.network(launchID: "b1"))

        #expect(after[wireless]?.id == wireless)
        #expect(after[wireless]?.routes.count == 1)
    }

    @Test func `an approved app stays listed when another app on a cable reports the same launch ID`() throws {
        var table = EndpointTable(Seen.network(launchID: "b1"))
        _ = table.setTrust(.approving(try #require(table[wireless])), of: wireless, at: now)

        table.see(Seen.usb("com.example.bank", udid: phone, launchID: "b1"))

        #expect(table[wireless]?.sameLaunchAs == nil)
        #expect(table.endpoints.combined.count == 2)
    }

    @Test func `an advertisement with its own approval keeps its endpoint, and its ID is no alias`() throws {
        var table = EndpointTable(Seen.network(launchID: "b1"))
        _ = table.setTrust(.approving(try #require(table[wireless])), of: wireless, at: now)

        table.see(Seen.usb("com.example.shop", udid: phone, launchID: "b1"))

        #expect(table.endpoints.count == 2)
        #expect(table[wireless]?.id == wireless)
        #expect(table[wireless]?.state == .online && table[wireless]?.approvedRoutes.count == 1)
        // Lists show both as one, because an owner vouches for the address that reports the launch.
        let cabled = try #require(table.endpoints.first { $0.id != wireless })
        #expect(table[wireless]?.sameLaunchAs == cabled.id)
        #expect(table.endpoints.combined.map(\.id) == [cabled.id])

        table.see(Seen.usb("com.example.shop", udid: phone, launchID: "b2"))
        #expect(table[wireless]?.sameLaunchAs == nil)
    }

    @Test func `an advertisement whose address an owner approves for a cabled app joins it`() throws {
        let cable = Seen.usb("com.example.shop", udid: phone)
        var table = EndpointTable(Seen.network(), cable)
        let advert = try #require(table[wireless])
        let cabled = try #require(table.endpoints.first { $0.id != wireless })

        _ = table.setTrust(.approving(advert), of: cabled.id, at: now)

        #expect(table.endpoints.map(\.id) == [cabled.id])
        #expect(table[wireless]?.routes.map(\.approval) == [.approved, .approved])

        // Without the approval, both are separate again.
        _ = table.setTrust(.none, of: cabled.id, at: now)
        #expect(Set(table.endpoints.map(\.id)) == [cabled.id, wireless])
        #expect(table[wireless]?.approval == .pending)
        #expect(table[cabled.id]?.routes.count == 1)
    }

    @Test func `another app cannot take an ID that leads to a cabled app`() throws {
        var table = EndpointTable(
            Seen.network(launchID: "b1"),
            Seen.usb("com.example.shop", udid: phone, launchID: "b1")
        )

        table.see(Seen.network("org.other.shop", port: 5_000, name: "other"))

        #expect(table[wireless]?.id.text == "shop-phone-5e6f70")
        #expect(table.endpoints.map(\.id.text) == ["shop-iphone-2", "shop-phone-5e6f70"])
    }

    @Test func `repeated merges of forged advertisements leave a limited number of aliases`() throws {
        var table = EndpointTable(Seen.usb("com.example.shop", udid: phone, launchID: "b1"))
        for number in 1...20 {
            let machine = "forged\(number).local"
            table.see(Seen.network(machine: machine), Seen.network(machine: machine, launchID: "b1"))
            table.lose(Seen.network(machine: machine).id)
        }

        let record = try #require(table.records.first)
        #expect(table.records.count == 1)
        #expect(record.formerIDs?.count == EndpointIndex.mergedLimit)
        #expect(record.formerIDs?.last?.text == "shop-forged20")
        #expect(table["shop-forged1"] == nil)
    }
}
