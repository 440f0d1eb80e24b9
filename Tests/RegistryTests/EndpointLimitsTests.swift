import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

@Suite struct EndpointLimitsTests {
    private var limits: EndpointLimits {
        var limits = EndpointLimits()
        (limits.total, limits.reserve, limits.perAddress) = (4, 2, 2)
        return limits
    }

    private func advert(_ number: Int, address: String? = nil) -> Sighting {
        Seen.network("com.flood.n\(number)", machine: "h\(number).local", address: address ?? "10.0.0.\(number)")
    }

    /// Lists the sightings, each one second after the one before.
    private func index(_ sightings: [Sighting]) -> EndpointIndex {
        var index = EndpointIndex()
        for (offset, sighting) in sightings.enumerated() {
            _ = index.add(for: sighting, on: ServerKey(of: sighting), at: now.addingTimeInterval(Double(offset)))
        }
        return index
    }

    /// The ID of the endpoint that makes room for a sighting. Nil if none does.
    private func evicted(
        for sighting: Sighting,
        _ limits: EndpointLimits,
        in index: EndpointIndex,
        trusts: [EndpointID: EndpointTrust] = [:]
    ) -> String? {
        guard case .byEvicting(let endpoint, _) = limits.room(for: sighting, in: index, trusts: trusts) else {
            return nil
        }
        return endpoint.id.text
    }

    @Test func `an advertisement takes a free place, then the place of the endpoint that is gone longest`() {
        let adverts = [advert(1), advert(2)]
        #expect(limits.room(for: advert(3), in: index([adverts[0]]), trusts: [:]) == .available)

        var full = index(adverts)
        for advert in adverts.reversed() { full.unassign(ServerKey(of: advert)) }
        #expect(evicted(for: advert(3), limits, in: full) == "n1-h1")
    }

    @Test func `without an endpoint that is gone, the older half stays and a newer one makes room`() {
        var limits = limits
        (limits.total, limits.reserve) = (6, 2)
        #expect(evicted(for: advert(5), limits, in: index((1...4).map { advert($0) })) == "n3-h3")
    }

    @Test func `the limit per address applies while the list has room, and one of the same address makes room`() {
        var limits = limits
        limits.total = 100
        let full = index([advert(1, address: "10.0.0.9"), advert(2, address: "10.0.0.9")])

        #expect(evicted(for: advert(3, address: "10.0.0.9"), limits, in: full) == "n2-h2")
        #expect(limits.room(for: advert(3), in: full, trusts: [:]) == .available)
    }

    @Test func `of an address, the machine with the most endpoints makes room`() {
        var limits = limits
        (limits.total, limits.perAddress) = (100, 4)
        let own = advert(1, address: "10.0.0.9")
        let others = (2...4).map { Seen.network("com.flood.n\($0)", machine: "evil.local", address: "10.0.0.9") }
        #expect(evicted(for: advert(5, address: "10.0.0.9"), limits, in: index(others + [own])) == "n3-evil")
    }

    @Test func `in a full list, the busiest interface and its most claimed address make room`() {
        var limits = limits
        (limits.total, limits.reserve, limits.perAddress) = (7, 2, 4)
        let quiet = Seen.network("com.example.quiet", machine: "quiet.local", interface: "wlan0", address: "10.1.0.1")
        let crowd = (1...3).map { advert($0, address: "10.0.0.9") }
        #expect(evicted(for: advert(9), limits, in: index(crowd + [quiet, advert(4)])) == "n2-h2")
    }

    @Test func `an approved endpoint counts against no advertisement and is not evicted`() throws {
        var full = index([advert(1), advert(2)])
        full.unassign(ServerKey(of: advert(1)))
        let id: EndpointID = "n1-h1"
        let approved = try #require(full[id]?.record.endpoint)
        let trusts = [approved.id: EndpointTrust.approving(approved)]
        #expect(limits.room(for: advert(3), in: full, trusts: trusts) == .available)

        var more = index([advert(1), advert(2), advert(3), advert(4)])
        more.unassign(ServerKey(of: advert(1)))
        #expect(evicted(for: advert(5), limits, in: more, trusts: trusts) == "n3-h3")

        var limits = limits
        limits.total = 100
        let crowd = index([advert(1, address: "10.0.0.9"), advert(2, address: "10.0.0.9")])
        #expect(limits.room(for: advert(3, address: "10.0.0.9"), in: crowd, trusts: trusts) == .available)
    }

    @Test func `a configured endpoint takes the reserve, then the place of an unapproved advertisement`() {
        let config = Seen.config("written")
        #expect(limits.room(for: config, in: index([advert(1), advert(2)]), trusts: [:]) == .available)

        let full = index([advert(1), advert(2), Seen.config("a"), Seen.config("b")])
        #expect(evicted(for: config, limits, in: full) == "n2-h2")
        #expect(
            limits.room(for: config, in: index((1...4).map { Seen.config("c\($0)") }), trusts: [:]) == .refused(.total)
        )
    }
}
