import AccessControl
import FoundationEssentials
import Logging
import Model
import Team
import TestSupport
import Testing

@testable import patchbayd

@Suite struct TeamLeaseClaimsTests {
    private let claims: TeamLeaseClaims

    init() throws {
        let host = try #require(HostName("lab1"))
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let session = TeamSession(store: InMemoryTeamStore(), logger: logger)
        claims = TeamLeaseClaims(TeamClaims(host: host, session: session), of: host)
    }

    private func claim(_ id: String, by host: String) throws -> (target: TeamClaimTarget, claim: TeamClaim) {
        let endpoint = try #require(EndpointID(id))
        let claim = TeamClaim(
            host: try #require(HostName(host)),
            endpoint: endpoint,
            device: nil,
            holder: SanitizedText("user 1000"),
            note: nil,
            createdAt: Date(timeIntervalSince1970: 0)
        )
        return (.endpoint(endpoint), claim)
    }

    @Test func `a claim of another host changes its own target only`() throws {
        let (shop, till) = (try claim("shop.lab2", by: "lab2"), try claim("till.lab2", by: "lab2"))

        #expect(claims.set(shop.claim, of: shop.target) && claims.set(till.claim, of: till.target))
        #expect(!claims.set(shop.claim, of: shop.target))
        #expect(claims.foreignClaims.count == 2)

        #expect(claims.set(nil, of: shop.target) && !claims.set(nil, of: shop.target))
        #expect(claims.foreignClaims == [.endpoint(till.claim.endpoint): till.claim])
    }

    @Test func `a claim of this host replaces that of another one`() throws {
        let (other, own) = (try claim("shop.lab1", by: "lab2"), try claim("shop.lab1", by: "lab1"))

        #expect(!claims.set(own.claim, of: own.target))
        #expect(claims.set(other.claim, of: other.target) && claims.set(own.claim, of: own.target))
        #expect(claims.foreignClaims.isEmpty)
    }
}
