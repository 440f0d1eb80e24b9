import AccessControl
import FoundationEssentials
import Model
import Testing

@testable import Team

@Suite struct TeamViewTests {
    private var view: TeamView

    init() throws { view = TeamView(of: try Values.host("lab1"), staleSince: Values.date) }

    private func entry(_ key: TeamKey, _ value: some Encodable) throws -> TeamStoreEntry {
        TeamStoreEntry(key: key.text, value: try TeamCoding.bytes(of: value, for: key))
    }

    private func member(_ name: String, key: UInt8? = nil) throws -> TeamStoreEntry {
        try entry(.member(try Values.host(name)), try Values.member(name, key: key))
    }

    private func host(_ name: String) throws -> TeamStoreEntry {
        try entry(.host(try Values.host(name)), try Values.teamHost(name))
    }

    private func endpoint(_ id: String, on host: String, state: Endpoint.State = .online) throws -> TeamStoreEntry {
        let endpoint = try Values.endpoint(id, state: state)
        return try entry(.endpoint(endpoint.id, on: try Values.host(host)), TeamEndpoint(endpoint))
    }

    private func device(_ number: Int, on host: String) throws -> TeamStoreEntry {
        let device = try Values.device(number)
        return try entry(.device(device.udid, .usb, on: try Values.host(host)), device)
    }

    private func claim(_ id: String, by host: String) throws -> TeamStoreEntry {
        try entry(.claim(.endpoint(try Values.id(id))), try Values.claim(host, of: id))
    }

    /// A short form of events: their kinds and names.
    private func names(_ events: [TeamEvent]) -> [String] {
        events.map { event in
            switch event {
            case .member(let member): "member \(member.name)"
            case .memberRemoved(let name): "-member \(name)"
            case .host(let host): "host \(host.name)"
            case .hostRemoved(let name): "-host \(name)"
            case .endpoint(let endpoint): "endpoint \(endpoint.id) \(endpoint.state.rawValue)"
            case .endpointRemoved(let id): "-endpoint \(id)"
            case .device(_, let host): "device \(host)"
            case .deviceRemoved(_, _, let host): "-device \(host)"
            case .claim(let target, let claim): "claim \(target.name) \(claim.host)"
            case .claimRemoved(let target): "-claim \(target.name)"
            case .stale(let since): since == nil ? "current" : "stale"
            }
        }
    }

    private func full() throws -> [TeamStoreEntry] {
        [
            try endpoint("shop", on: "lab2"), try device(1, on: "lab2"), try host("lab2"), try member("lab1"),
            try member("lab2"), try claim("shop.lab2", by: "lab2"),
        ]
    }

    @Test mutating func `a list is reported as members first`() throws {
        #expect(
            names(view.replace(with: try full())) == [
                "member lab1", "member lab2", "endpoint shop.lab2 online", "device lab2", "host lab2",
                "claim shop.lab2 lab2",
            ]
        )
    }

    @Test mutating func `an equal list reports nothing`() throws {
        _ = view.replace(with: try full())

        #expect(view.replace(with: try full()) == [])
    }

    @Test mutating func `a new list reports only its differences`() throws {
        _ = view.replace(with: try full() + [try endpoint("gone", on: "lab2")])

        let changed = [try endpoint("shop", on: "lab2", state: .offline), try endpoint("new", on: "lab2")]
        let events = view.replace(with: Array(try full().dropFirst()) + changed)

        #expect(names(events) == ["-endpoint gone.lab2", "endpoint shop.lab2 offline", "endpoint new.lab2 online"])
    }

    @Test mutating func `changes are reported in order`() throws {
        _ = view.replace(with: try full())

        let events = view.apply([
            .put(try endpoint("shop", on: "lab2", state: .suspect)), .put(try endpoint("shop", on: "lab2")),
            .delete(key: try device(1, on: "lab2").key), .delete(key: try endpoint("shop", on: "lab2").key),
            .delete(key: try claim("shop.lab2", by: "lab2").key), .delete(key: try host("lab2").key),
        ])

        #expect(
            names(events) == [
                "endpoint shop.lab2 suspect", "endpoint shop.lab2 online", "-device lab2", "-endpoint shop.lab2",
                "-claim shop.lab2", "-host lab2",
            ]
        )
    }

    @Test mutating func `the entries of this host are not reported, except its membership and its claims`() throws {
        let events = view.replace(with: [
            try member("lab1"), try host("lab1"), try endpoint("shop", on: "lab1"), try device(1, on: "lab1"),
            try claim("shop.lab1", by: "lab1"),
        ])

        #expect(names(events) == ["member lab1", "claim shop.lab1 lab1"])
    }

    @Test mutating func `the entries of a host that is no member are ignored until it is one`() throws {
        let leftovers = [
            try host("lab2"), try endpoint("shop", on: "lab2"), try device(1, on: "lab2"),
            try claim("shop.lab2", by: "lab2"),
        ]
        #expect(view.replace(with: leftovers) == [])

        let events = view.apply([.put(try member("lab2"))])

        #expect(
            names(events) == [
                "member lab2", "host lab2", "device lab2", "endpoint shop.lab2 online", "claim shop.lab2 lab2",
            ]
        )
    }

    @Test mutating func `the removal of a member removes its entries and claims`() throws {
        _ = view.replace(with: try full())

        let events = view.apply([.delete(key: try member("lab2").key)])

        #expect(
            names(events) == ["-claim shop.lab2", "-device lab2", "-endpoint shop.lab2", "-host lab2", "-member lab2"]
        )
        #expect(view.apply([.put(try endpoint("late", on: "lab2"))]) == [])
        #expect(view.apply([.delete(key: try endpoint("shop", on: "lab2").key)]) == [])
    }

    @Test mutating func `a member with a new key is reported, without its entries again`() throws {
        _ = view.replace(with: try full())

        #expect(names(view.apply([.put(try member("lab2", key: 2))])) == ["member lab2"])
    }

    @Test mutating func `an unreadable entry is skipped and counted`() throws {
        let broken = TeamStoreEntry(key: try endpoint("broken", on: "lab2").key, value: Array("{".utf8))

        let events = view.replace(with: try full() + [broken])

        #expect(events.count == 6)
        #expect(view.unreadable.count == 1)
        #expect(view.apply([.delete(key: broken.key)]) == [])
        #expect(view.unreadable.isEmpty)
    }

    @Test mutating func `an entry that becomes unreadable is removed, and comes back`() throws {
        _ = view.replace(with: try full())
        let key = try endpoint("shop", on: "lab2").key

        #expect(names(view.apply([.put(TeamStoreEntry(key: key, value: []))])) == ["-endpoint shop.lab2"])
        #expect(names(view.apply([.put(try endpoint("shop", on: "lab2"))])) == ["endpoint shop.lab2 online"])
        #expect(view.unreadable.isEmpty)
    }

    @Test mutating func `a value of another key is not believed`() throws {
        _ = view.replace(with: [try member("lab2"), try member("lab3")])
        let hostKey = try host("lab2").key
        let deviceKey = try device(1, on: "lab2").key

        #expect(view.apply([.put(TeamStoreEntry(key: hostKey, value: try host("lab3").value))]) == [])
        #expect(view.apply([.put(TeamStoreEntry(key: deviceKey, value: try device(2, on: "lab2").value))]) == [])
        #expect(view.unreadable.count == 2)
    }

    @Test mutating func `an unknown key is ignored`() throws {
        #expect(view.replace(with: [TeamStoreEntry(key: "/patchbay/v1/later/x", value: [])]) == [])
        #expect(view.apply([.delete(key: "/patchbay/v1/later/x")]) == [])
    }

    @Test mutating func `the view is stale until the first list, and since the first failure`() throws {
        #expect(view.staleSince == Values.date)
        #expect(names(view.mark(staleSince: nil)) == ["current"])
        #expect(view.mark(staleSince: nil) == [])

        let first = Values.date.addingTimeInterval(1)
        #expect(view.mark(staleSince: first) == [.stale(since: first)])
        #expect(view.mark(staleSince: Values.date.addingTimeInterval(2)) == [])
        #expect(view.staleSince == first)
    }

    @Test mutating func `10,000 endpoints are one stale event`() throws {
        let members = [try member("lab2"), try member("lab3"), try member("lab4")]
        let endpoints = try (0..<10_000).map { try endpoint("app-\($0)", on: "lab\($0 % 3 + 2)") }
        let events = view.replace(with: members + endpoints)
        #expect(events.count == 10_003)
        _ = view.mark(staleSince: nil)

        #expect(view.mark(staleSince: Values.date).count == 1)
        #expect(view.replace(with: members + endpoints) == [])
    }
}
