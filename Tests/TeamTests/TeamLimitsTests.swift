import AccessControl
import FoundationEssentials
import Logging
import Model
import Synchronization
import TestSupport
import Testing

@testable import Team

/// The entries of a host that writes too much.
@Suite(.timeLimit(.minutes(1))) struct TeamLimitsTests {
    private let lab2: HostName
    private var view: TeamView

    init() throws {
        lab2 = try Values.host("lab2")
        view = TeamView(of: try Values.host("lab1"), staleSince: Values.date)
    }

    private func entry(_ key: TeamKey, _ value: some Encodable) throws -> TeamStoreEntry {
        TeamStoreEntry(key: key.text, value: try TeamCoding.bytes(of: value, for: key))
    }

    private func member(_ name: String) throws -> TeamStoreEntry {
        try entry(.member(try Values.host(name)), try Values.member(name))
    }

    private func endpoint(_ id: String) throws -> TeamStoreEntry {
        let endpoint = try Values.endpoint(id)
        return try entry(.endpoint(endpoint.id, on: lab2), TeamEndpoint(endpoint))
    }

    private func padded(_ entry: TeamStoreEntry, to count: Int) -> TeamStoreEntry {
        let padding = [UInt8](repeating: UInt8(ascii: " "), count: count - entry.value.count)
        return TeamStoreEntry(key: entry.key, value: entry.value + padding)
    }

    @Test mutating func `a value of more than 4 KiB is unreadable under every key`() throws {
        let udid = try Values.udid(1)
        let entries = [
            try member("lab3"), try entry(.host(lab2), Values.teamHost("lab2")), try endpoint("shop"),
            try entry(.device(udid, .usb, on: lab2), Values.device(1)),
            try entry(.claim(.device(udid)), Values.claim("lab2", of: "shop.lab2")),
        ]
        #expect(view.replace(with: [try member("lab2")] + entries.map { padded($0, to: 4_097) }).count == 1)
        #expect(view.unreadable.count == entries.count)

        #expect(view.apply(entries.map { .put(padded($0, to: 4_096)) }).count == entries.count)
        #expect(view.unreadable.isEmpty)
    }

    @Test mutating func `a host has at most 16 addresses of at most 255 bytes`() throws {
        let long = String(repeating: "a", count: 255)
        let addresses = ["b" + long, long] + (0..<20).map { "10.0.0.\($0):7284" }
        let host = TeamHost(name: lab2, version: "1", addresses: addresses, since: Values.date, generation: 0)

        let events = view.replace(with: [try member("lab2"), try entry(.host(lab2), host)])

        guard case .host(let read)? = events.last else { return #expect(Bool(false), "\(events)") }
        #expect(read.addresses == Array(addresses[1...16]))
    }

    @Test mutating func `a host has at most 4,096 endpoints, and further ones are ignored and counted`() throws {
        let entries = try (0..<4_100).map { try endpoint("app-\($0)") }
        let list = [try member("lab2")] + entries
        #expect(view.replace(with: list).count == 1 + 4_096)
        #expect(view.unreadable.count == 4)
        #expect(view.replace(with: list).isEmpty)

        #expect(view.apply([.delete(key: entries[0].key), .put(entries[4_099])]).count == 2)
        #expect(view.unreadable.count == 3)
        // 98 endpoints stay, and the one that was deleted before is new.
        #expect(view.replace(with: Array(list.prefix(100))).count == 4_096 - 98 + 1)
        #expect(view.unreadable.isEmpty)
    }

    @Test mutating func `a host has at most 512 phones`() throws {
        let entries = try (0..<514).map { number in
            try entry(.device(try Values.udid(number), .usb, on: lab2), Values.device(number))
        }
        #expect(view.replace(with: [try member("lab2")] + entries).count == 1 + 512)
        #expect(view.unreadable.count == 2)
    }

    @Test mutating func `the team has at most 4,096 claims, and further ones are ignored`() throws {
        let entries = try (0..<4_100).map { number in
            let id = "app-\(number).lab2"
            return try entry(.claim(.endpoint(try Values.id(id))), Values.claim("lab2", of: id))
        }
        let list = [try member("lab2")] + entries
        #expect(view.replace(with: list).count == 1 + 4_096)
        #expect(view.hasTooManyClaims && view.unreadable.count == 4)

        #expect(view.apply([.put(entries[4_099])]).isEmpty)
        #expect(view.apply([.delete(key: entries[0].key), .put(entries[4_099])]).count == 2)
        #expect(view.replace(with: Array(list.dropLast(4))).count == 2)
        #expect(!view.hasTooManyClaims && view.unreadable.isEmpty)
    }

    @Test mutating func `at most 1,000 ignored keys are kept`() throws {
        let entries = try (0..<1_001).map { number in
            TeamStoreEntry(key: TeamKey.endpoint(try Values.id("app-\(number)"), on: lab2).text, value: [])
        }
        #expect(view.replace(with: [try member("lab2")] + entries).count == 1)
        #expect(view.unreadable.count == 1_000)
    }

    @Test mutating func `the names of endpoints are as short as those of this host`() throws {
        let long = SanitizedText(String(repeating: "x", count: 1_000), limit: .max)
        var endpoint = try Values.endpoint("shop")
        (endpoint.app, endpoint.name, endpoint.version, endpoint.server) = (long, long, long, nil)
        let value = try entry(.endpoint(endpoint.id, on: lab2), TeamEndpoint(endpoint))

        let events = view.replace(with: [try member("lab2"), value])

        guard case .endpoint(let read)? = events.last else { return #expect(Bool(false), "\(events)") }
        #expect(read.app.text.utf8.count == 155)
        #expect(read.name.text.utf8.count == SanitizedText.nameLimit)
        #expect(read.version?.text.utf8.count == SanitizedText.nameLimit)
    }

    @Test mutating func `a member with a removed key is no member`() throws {
        view.removedKeys = [try Values.member("lab2").key]

        #expect(view.replace(with: [try member("lab2"), try endpoint("shop")]).isEmpty)
        #expect(view.apply([.put(try entry(.member(lab2), Values.member("lab2", key: 9)))]).count == 2)
    }

    @Test func `a claim counts without a lease ID that no broker gives`() throws {
        for (text, lease) in [
            ("l12", "l12"), ("l", nil), ("12", nil), ("l1\u{1B}[2J", nil), ("l1.lab3", nil), ("l١", nil),
            ("l" + String(repeating: "1", count: 21), nil),
        ] {
            let claim = try read(lease: text, seconds: 600)
            #expect(claim.lease == lease && claim.host == lab2, "\(text)")
        }
    }

    @Test(arguments: [(-1, 0), (0, 0), (600, 600), (28_801, 28_800), (Int.max, 28_800)])
    func `a claim has 0 to 28,800 seconds`(written: Int, seconds: Int) throws {
        #expect(try read(lease: "l1", seconds: written).seconds == seconds)
    }

    /// Returns a claim as another host reads it.
    private func read(lease: String, seconds: Int) throws -> TeamClaim {
        let claim = TeamClaim(
            host: lab2,
            endpoint: try Values.id("shop.lab2"),
            device: nil,
            holder: SanitizedText("user 1000"),
            lease: lease,
            seconds: seconds,
            note: nil,
            createdAt: Values.date
        )
        let bytes = try TeamCoding.bytes(of: claim, for: .claim(.endpoint(claim.endpoint)))
        return try #require(TeamCoding.value(TeamClaim.self, from: bytes))
    }
}
