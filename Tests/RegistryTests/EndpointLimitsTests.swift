import FoundationEssentials
import Model
import Testing

@testable import Registry

@Suite struct EndpointLimitsTests {
    private let now = Date(timeIntervalSince1970: 1_000)
    private var limits: EndpointLimits {
        var limits = EndpointLimits()
        (limits.total, limits.reserve, limits.perAddress) = (4, 2, 2)
        return limits
    }

    private func advert(_ number: Int, address: String? = nil) -> Sighting {
        Seen.network("com.flood.n\(number)", host: "h\(number).local", address: address ?? "10.0.0.\(number)")
    }

    /// Lists the sightings, each one second after the one before.
    private func index(_ sightings: [Sighting]) -> EndpointIndex {
        var index = EndpointIndex()
        for (offset, sighting) in sightings.enumerated() {
            _ = index.add(for: sighting, on: ServerKey(of: sighting), at: now.addingTimeInterval(Double(offset)))
        }
        return index
    }

    @Test func `an advertisement takes a free place, then the place of the endpoint that is gone longest`() {
        let adverts = [advert(1), advert(2)]
        #expect(limits.room(for: advert(3), in: index([adverts[0]]), trusts: [:]) == .available)

        var full = index(adverts)
        #expect(limits.room(for: advert(3), in: full, trusts: [:]) == .refused(.total))
        for advert in adverts.reversed() { full.unassign(ServerKey(of: advert)) }
        guard case .byEvicting(let endpoint) = limits.room(for: advert(3), in: full, trusts: [:]) else {
            Issue.record("nothing is evicted")
            return
        }
        #expect(endpoint.id.text == "n1-h1")
    }

    @Test func `the limit per address applies while the list has room`() {
        var limits = limits
        limits.total = 100
        let full = index([advert(1, address: "10.0.0.9"), advert(2, address: "10.0.0.9")])

        #expect(limits.room(for: advert(3, address: "10.0.0.9"), in: full, trusts: [:]) == .refused(.perAddress))
        #expect(limits.room(for: advert(3), in: full, trusts: [:]) == .available)
    }

    @Test func `an approved endpoint does not count against advertisements and is not evicted`() throws {
        var full = index([advert(1), advert(2)])
        full.unassign(ServerKey(of: advert(1)))
        let id = try #require(EndpointID("n1-h1"))
        let approved = try #require(full[id]?.record.endpoint)
        let trusts = [approved.id: EndpointTrust.approving(approved)]

        #expect(limits.room(for: advert(3), in: full, trusts: trusts) == .available)
        var more = index([advert(1), advert(2), advert(3), advert(4)])
        more.unassign(ServerKey(of: advert(1)))
        #expect(limits.room(for: advert(5), in: more, trusts: trusts) == .refused(.total))
    }

    @Test func `a configured endpoint takes the reserve, then the place of an unapproved advertisement`() {
        let config = Seen.config("written")
        #expect(limits.room(for: config, in: index([advert(1), advert(2)]), trusts: [:]) == .available)

        let full = index([advert(1), advert(2), Seen.config("a"), Seen.config("b")])
        guard case .byEvicting(let endpoint) = limits.room(for: config, in: full, trusts: [:]) else {
            Issue.record("nothing is evicted")
            return
        }
        #expect(endpoint.id.text == "n1-h1")
        #expect(
            limits.room(for: config, in: index((1...4).map { Seen.config("c\($0)") }), trusts: [:]) == .refused(.total)
        )
    }
}
