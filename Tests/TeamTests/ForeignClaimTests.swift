import Model
import Samples
import ServiceLifecycle
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

    @Test func `a claim that ended before this host got its own has no effect when the watch delivers it later`()
        async throws
    {
        let clock = ManualClock()
        let store = InMemoryTeamStore(clock: clock)
        let session = TeamSession(store: store, clock: clock, logger: Values.logger)
        let claims = TeamClaims(host: try Values.host("lab1"), session: session)
        let target = LeaseTarget.device(try Values.udid(1))
        let other = try Values.claim("lab2", of: "shop.lab2")
        try await withRunning([session, claims] as [any Service]) {
            try await eventually("lab1 has a session lease") { session.currentLease != nil }
            try await claims.acquire(try Values.leaseClaim(on: target, of: "shop"))

            #expect(claims.record(other, of: target) && claims.foreignClaims.isEmpty)

            let value = try #require(try await store.list(TeamKey.claim(target).text).entries.first?.value)
            let own = TeamCoding.value(TeamClaim.self, from: value)
            #expect(claims.record(own, of: target) && claims.foreignClaims.isEmpty)
            // This one is later, so it has replaced the claim.
            #expect(claims.record(other, of: target) && claims.foreignClaims == [target: other])
        }
    }
}
