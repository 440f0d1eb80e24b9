import FoundationEssentials
import Model
import Testing

@testable import Registry

/// Machines that number themselves, rename themselves, or draw a new name for each start.
@Suite struct MachineNameTests {
    private let random = [
        "0a1b2c3d4e5f60718293a4b5c6d7e8f9", "ffeeddccbbaa99887766554433221100", "0123456789abcdef0123456789abcdef",
    ]
    .map { "Android_\($0).local" }

    private func ids(_ table: EndpointTable) -> [String] { table.endpoints.map(\.id.text) }

    /// Lists one sighting after the other. Each has gone before the next one comes.
    private func table(_ sightings: [Sighting], later: TimeInterval = 60) -> EndpointTable {
        var table = EndpointTable()
        for (index, sighting) in sightings.enumerated() {
            let time = now.addingTimeInterval(Double(index) * later)
            _ = table.apply(.seen(sighting), at: time)
            if index < sightings.count - 1 { _ = table.apply(.lost(sighting.id), at: time) }
        }
        return table
    }

    @Test func `another phone with another number takes over neither the ID nor the approval`() throws {
        let (first, second) = (
            Seen.network(machine: "iPhone-12.local", address: "10.0.0.12"),
            Seen.network(machine: "iPhone-15.local", address: "10.0.0.15")
        )
        var table = table([first])
        let endpoint = try #require(table.endpoints.first)
        _ = table.setTrust(.approving(endpoint), of: endpoint.id, at: now)
        table.lose(first.id)
        table.see(second)

        #expect(ids(table) == ["shop-iphone-12", "shop-iphone-15"])
        #expect(table.endpoints.map(\.approval) == [.approved, .pending])
        table.lose(second.id)
        table.see(first)
        #expect(table.endpoint(seenAs: first.id)?.id == endpoint.id)
        #expect(table[endpoint.id]?.approval == .approved)
    }

    @Test func `another phone that announces the same instance name before the first one says goodbye is another app`()
    {
        let (first, second) = (
            Seen.network(machine: "iPhone-12.local", address: "10.0.0.12", name: "app"),
            Seen.network(machine: "iPhone-15.local", address: "10.0.0.15", name: "app")
        )
        let moved = Sighting(
            id: first.id,
            kind: second.kind,
            app: second.app,
            appIsBundleID: true,
            name: second.name,
            machine: second.machine,
            routes: second.routes
        )
        var table = table([first])
        table.see(moved)
        #expect(ids(table) == ["shop-iphone-12", "shop-iphone-15"])
        #expect(table.endpoint(seenAs: first.id)?.id.text == "shop-iphone-15")
    }

    @Test(arguments: [("canidae", "canidae5045"), ("mac", "mac-2"), ("mac-3", "mac-4"), ("mac-2", "mac")])
    func `an approved app keeps its ID and approval when its responder renames the machine`(old: String, new: String)
        throws
    {
        let (before, after) = (Seen.network(machine: "\(old).local"), Seen.network(machine: "\(new).local"))
        var table = table([before])
        let endpoint = try #require(table.endpoints.first)
        _ = table.setTrust(.approving(endpoint), of: endpoint.id, at: now)
        table.lose(before.id)
        table.see(after)

        #expect(ids(table) == [endpoint.id.text])
        #expect(table.endpoints.map(\.approval) == [.approved])
        #expect(table.endpoints.map(\.location.machine?.text) == ["\(new).local"])
    }

    @Test func `a machine is renamed while the other IP version still reports the old name`() {
        let old = ["192.168.1.20", "fe80::1"].map { Seen.network(machine: "canidae.local", address: $0, name: "app") }
        var table = EndpointTable(old)
        for (sighting, address) in zip(old, ["192.168.1.20", "fe80::1"]) {
            table.lose(sighting.id)
            table.see(Seen.network(machine: "canidae5045.local", address: address, name: "app"))
        }
        #expect(ids(table) == ["shop-canidae"])
        #expect(table.endpoints.first?.routes.count == 2)
    }

    @Test func `three launches on Android have one ID and one approval, also after a restart of the broker`() throws {
        let launches = random.enumerated().map { Seen.network(machine: $1, port: UInt16(5_000 + $0)) }
        var table = table([launches[0]])
        let endpoint = try #require(table.endpoints.first)
        #expect(endpoint.id.text == "shop-android")
        let trust = EndpointTrust.approving(endpoint)
        _ = table.setTrust(trust, of: endpoint.id, at: now)
        table.lose(launches[0].id)
        table.see(launches[1])
        #expect(ids(table) == ["shop-android"])
        #expect(table.endpoints.map(\.approval) == [.approved])

        table.lose(launches[1].id)
        table = EndpointTable(records: try coded(table.records.map { $0.saved(at: now) }), trusts: [endpoint.id: trust])
        _ = table.apply(.seen(launches[2]), at: now.addingTimeInterval(3_600))
        #expect(ids(table) == ["shop-android"])
        #expect(table.endpoints.map(\.approval) == [.approved])
    }

    @Test
    func
        `a random machine name at another address, of another instance or after the lifetime of an address is another app`()
    {
        let first = Seen.network(machine: random[0], address: "10.0.0.12")
        for other in [
            Seen.network(machine: random[1], address: "10.0.0.15"),
            Seen.network(machine: random[1], interface: "eth1", address: "10.0.0.12"),
            Seen.network(machine: random[1], address: "10.0.0.12", name: "other"),
            Seen.network("com.example.bank", machine: random[1], address: "10.0.0.12"),
            Seen.network(machine: "pixel.local", address: "10.0.0.12"),
        ] { #expect(table([first, other]).endpoints.count == 2, "\(other)") }
        let same = Seen.network(machine: random[1], address: "10.0.0.12")
        #expect(table([first, same], later: AdvertisedPlace.addressLifetime).endpoints.count == 1)
        #expect(table([first, same], later: AdvertisedPlace.addressLifetime + 1).endpoints.count == 2)
    }

    @Test func `two launches at once on one Android phone are two apps`() {
        var table = EndpointTable(Seen.network(machine: random[0], name: "app"))
        table.see(Seen.network(machine: random[1], port: 5_000, name: "app (2)"))
        #expect(ids(table) == ["shop-android", "shop-android-2"])
    }

    @Test func `an address that the device has left identifies it no longer`() {
        var table = EndpointTable()
        let first = Seen.network(machine: random[0], address: "10.0.0.12", name: "app")
        let moved = Sighting(
            id: first.id,
            kind: first.kind,
            app: first.app,
            appIsBundleID: true,
            name: first.name,
            machine: first.machine,
            routes: Seen.network(machine: random[0], address: "10.0.0.30").routes
        )
        table.see([first, moved])
        #expect(ids(table) == ["shop-android"])
        table.lose(first.id)

        table.see(Seen.network(machine: random[1], address: "10.0.0.12", name: "app"))
        #expect(table.endpoints.count == 2)
    }

    @Test func `a removed app on Android gets its ID back at its address`() throws {
        let first = Seen.network(machine: random[0])
        var table = table([first])
        table.lose(first.id)
        _ = try table.removeUnseen(try #require(table.endpoints.first).id)
        table.see(Seen.network(machine: random[1], address: "10.0.0.66"))
        #expect(ids(table) == ["shop-android-2"])
        table.see(Seen.network(machine: random[2]))
        #expect(ids(table) == ["shop-android", "shop-android-2"])
    }

    @Test func `a device ID in the TXT record identifies a device under any name and address`() {
        let first = Seen.network(machine: random[0], address: "10.0.0.12", txt: ["deviceId=A7"])
        let moved = Seen.network(machine: random[1], address: "10.0.0.30", txt: ["deviceId=A7"])
        #expect(table([first, moved], later: 1_000_000).endpoints.count == 1)

        let other = Seen.network(machine: "iphone.local", txt: ["deviceId=B8"])
        #expect(table([Seen.network(machine: "iphone.local", txt: ["deviceId=A7"]), other]).endpoints.count == 2)
        #expect(
            table([Seen.network(machine: "iphone.local"), other]).endpoints.count == 1,
            "the app reports it only now"
        )
    }

    @Test func `an escaped machine name is decoded before an ID is made of it`() {
        #expect(ids(table([Seen.network(machine: "Anna’s iPhone.local")])) == ["shop-annas-iphone"])
    }

    /// Encodes and decodes, as a restart of the broker does.
    private func coded<T: Codable>(_ value: T) throws -> T {
        try JSONDecoder().decode(T.self, from: JSONEncoder().encode(value))
    }

    @Test func `a saved endpoint has its machine under the key host`() throws {
        let record = try #require(table([Seen.network(machine: "iphone.local")]).records.first)
        let data = try JSONCoding.encoder().encode(record)
        let json = try JSON(parsing: Array(data))
        #expect(json["host"] == "iphone.local")
        #expect(json["endpoint"]?["location"]?["host"] == "iphone.local")
        #expect(json["keys"]?.array?.first?["location"] == "host:iphone")
        #expect(try JSONCoding.decoder().decode(PersistedEndpoint.self, from: data) == record)
    }
}
