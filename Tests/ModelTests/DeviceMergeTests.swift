import FoundationEssentials
import Model
import Testing

/// The list of phones of a team.
@Suite struct DeviceMergeTests {
    private func udid(_ number: Int) throws -> UDID { try #require(UDID("00008030-00000000000000\(number)0")) }
    private func host(_ name: String) throws -> HostName { try #require(HostName(name)) }

    private func device(_ number: Int, _ transport: Device.Transport = .usb, name: String? = nil) throws -> Device {
        var device = Device(udid: try udid(number), transport: transport, attachedAt: Date(timeIntervalSince1970: 0))
        device.name = name.map { SanitizedText($0) }
        return device
    }

    private func phones(_ name: String, _ devices: [Device], staleSince: Date? = nil) throws -> HostDevices {
        HostDevices(host: HostStatus(name: try host(name), staleSince: staleSince), devices: devices)
    }

    /// The routes of the first device, as `lab1 usb`.
    private func routes(_ devices: [Device]) -> [String] {
        (devices.first?.routes ?? []).map { "\($0.host.name) \($0.transport.rawValue)" }
    }

    @Test func `a phone at two hosts is one device with two routes, this host first`() throws {
        let others = [try phones("aaa", [try device(1, name: "there")]), try phones("zzz", [try device(1, .network)])]

        let merged = [try device(1, .network, name: "here")].merged(on: try host("lab1"), with: others)

        #expect(merged.map(\.name?.text) == ["here"])
        #expect(routes(merged) == ["lab1 network", "aaa usb", "zzz network"])
    }

    @Test func `a phone that only other hosts have is listed once, by its best route`() throws {
        let late = Date(timeIntervalSince1970: 9)
        let others = [
            try phones("aaa", [try device(1, name: "stale")], staleSince: late),
            try phones("bbb", [try device(1, .network, name: "network"), try device(1, name: "usb")]),
            try phones("ccc", [try device(1, name: "later")]),
        ]

        let merged = [Device]().merged(on: try host("lab1"), with: others)

        #expect(merged.map(\.name?.text) == ["usb"])
        #expect(routes(merged) == ["bbb usb", "ccc usb", "bbb network", "aaa usb"])
        #expect(merged.first?.routes?.last?.host.staleSince == late)
    }

    @Test func `an attached phone keeps one entry for each transport`() throws {
        let merged = [try device(2), try device(1, .network), try device(1)].merged(on: try host("lab1"), with: [])

        #expect(merged.map(\.udid) == [try udid(1), try udid(1), try udid(2)])
        #expect(merged.map(\.transport) == [.network, .usb, .usb])
        #expect(merged.allSatisfy { ($0.routes ?? []).allSatisfy { $0.host.staleSince == nil } })
        #expect(routes(merged) == ["lab1 usb", "lab1 network"])
    }

    @Test func `what other hosts say about this host does not count`() throws {
        let merged = [Device]().merged(on: try host("lab1"), with: [try phones("lab1", [try device(1)])])

        #expect(merged.isEmpty)
    }

    @Test func `the state of a host is a list item`() throws {
        let list = ListResponse([HostStatus(name: try host("lab2"), staleSince: Date(timeIntervalSince1970: 0))])
        let json = String(decoding: try JSONCoding.encoder().encode(list), as: UTF8.self)
        #expect(json == #"{"hosts":[{"name":"lab2","staleSince":"1970-01-01T00:00:00.000Z"}],"schema":1}"#)
    }
}
