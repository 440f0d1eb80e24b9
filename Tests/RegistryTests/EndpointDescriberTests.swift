import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

@Suite struct EndpointDescriberTests {
    /// Describes an endpoint of the first sighting by all of them.
    private func describe(
        _ sightings: Sighting...,
        mismatches: [Route: SanitizedText] = [:],
        liveness: Liveness = Liveness(),
        isStale: Bool = false
    ) throws -> Endpoint {
        let first = try #require(sightings.first)
        var index = EndpointIndex()
        let id = index.add(for: first, on: ServerKey(of: first), at: now)
        return EndpointDescriber(
            sightings: sightings,
            trust: .none,
            mismatches: mismatches,
            liveness: liveness,
            isStale: isStale
        ).describe(try #require(index[id]?.record.endpoint))
    }

    @Test func `an endpoint has the routes of all sightings, the most promising first`() throws {
        let phone = UDID.sample
        let endpoint = try describe(
            Seen.network(address: "fe80::1"),
            Seen.network(address: "169.254.1.1"),
            Seen.network(address: "2001:db8::20"),
            Seen.network(),
            Seen.usb(udid: phone)
        )

        #expect(
            endpoint.routes.map(\.route.address) == [nil, "192.168.1.20", "2001:db8::20", "169.254.1.1", "fe80::1"]
        )
        #expect(endpoint.sources == [.bonjour, .usbmuxd])
        #expect(endpoint.location.udid == phone)
        #expect(endpoint.location.machine == nil, "only approved routes describe an approved endpoint")
    }

    @Test func `an endpoint without sightings is offline and keeps what is known of its app`() throws {
        let before = try describe(Seen.network(txt: ["a=1"]))
        let nothing = EndpointDescriber(
            sightings: [],
            trust: .none,
            mismatches: [:],
            liveness: Liveness(),
            isStale: true
        )

        let after = nothing.describe(before)

        #expect(after.state == .offline)
        #expect(after.routes.isEmpty && after.sources.isEmpty)
        #expect(after.app == before.app && after.txt == before.txt)
    }

    @Test func `an endpoint is suspect while its sources are unavailable, unless probes say more`() throws {
        var liveness = Liveness()
        #expect(try describe(Seen.network(), isStale: true).state == .suspect)
        #expect(try describe(Seen.network()).state == .online)

        for _ in 1...Liveness.failuresToOffline { liveness.failed(DialError(.refused, "refused")) }
        #expect(try describe(Seen.network(), liveness: liveness, isStale: true).state == .offline)
        #expect(try describe(Seen.network(blocked: "no link"), liveness: liveness).reason == "no link")
    }

    @Test func `a route on which another app answered needs a new approval`() throws {
        let cable = Seen.usb("com.example.shop", udid: .sample)

        #expect(try describe(cable).approval == .approved)
        #expect(try describe(cable, mismatches: [cable.routes[0]: SanitizedText("bank")]).approval == .changed)
    }
}
