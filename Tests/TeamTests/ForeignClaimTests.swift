import Model
import Samples
import SystemIO
import TestSupport
import Testing

@testable import AccessControl
@testable import Team

/// The claims of other hosts, as a broker knows them from the registry.
@Suite struct ForeignClaimTests {
    /// Returns the claims of the host lab1, whose registry is empty.
    private func makeClaims() throws -> TeamClaims {
        let clock = ManualClock()
        let store = InMemoryTeamStore(clock: clock)
        let session = TeamSession(store: store, clock: clock, logger: Values.logger)
        return TeamClaims(host: try Values.host("lab1"), session: session)
    }

    @Test func `a claim of another host changes its own target only`() throws {
        let claims = try makeClaims()
        let (shop, till) = (try Values.claim("lab2", of: "shop.lab2"), try Values.claim("lab2", of: "till.lab2"))
        let (shopTarget, tillTarget) = (LeaseTarget.endpoint(shop.endpoint), LeaseTarget.endpoint(till.endpoint))

        #expect(claims.record(shop, of: shopTarget) && claims.record(till, of: tillTarget))
        #expect(!claims.record(shop, of: shopTarget))
        #expect(claims.foreignClaims.count == 2)

        #expect(claims.record(nil, of: shopTarget) && !claims.record(nil, of: shopTarget))
        #expect(claims.foreignClaims == [tillTarget: till])
    }

    @Test func `a claim of this host replaces that of another one`() throws {
        let claims = try makeClaims()
        let target = LeaseTarget.endpoint(try Values.id("shop.lab1"))
        let (other, own) = (try Values.claim("lab2", of: "shop.lab1"), try Values.claim("lab1", of: "shop.lab1"))

        #expect(!claims.record(own, of: target))
        #expect(claims.record(other, of: target) && claims.record(own, of: target))
        #expect(claims.foreignClaims.isEmpty)
    }
}
