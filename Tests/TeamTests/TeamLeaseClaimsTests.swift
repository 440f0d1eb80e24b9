import FoundationEssentials
import Model
import Samples
import TestSupport
import Testing

@testable import AccessControl
@testable import Team

@Suite struct TeamLeaseClaimsTests {
    private let store = InMemoryTeamStore()
    private let session: TeamSession
    private let teamClaims: TeamClaims
    private let claims: TeamLeaseClaims

    init() throws {
        let host: HostName = "lab1"
        session = TeamSession(store: store, logger: .quiet)
        teamClaims = TeamClaims(host: host, session: session)
        claims = TeamLeaseClaims(teamClaims, of: host)
    }

    /// Runs the session and the claims, from the first lease in the registry on.
    private func running(_ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [session] in try await session.run() }
            group.addTask { [teamClaims] in try await teamClaims.run() }
            defer { group.cancelAll() }
            try await eventually("the session has a lease") { session.lease != nil }
            try await body()
        }
    }

    private func claim(_ id: String, by host: String) throws -> (target: LeaseTarget, claim: TeamClaim) {
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

    @Test func `a call under a claim that lapsed during a pause of the process is refused before its end is reported`()
        async throws
    {
        let clock = ManualClock()
        let host: HostName = "lab1"
        let session = TeamSession(store: store, clock: clock, logger: .quiet)
        let teamClaims = TeamClaims(host: host, session: session)
        let leases = LeaseService(claims: TeamLeaseClaims(teamClaims, of: host))
        let phone = Endpoint.sample(kind: .mcp, location: Endpoint.Location(udid: UDID("00008101-000123456789ABCD")))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await session.run() }
            group.addTask { try await teamClaims.run() }
            group.addTask { try await leases.run() }
            defer { group.cancelAll() }
            try await eventually("the session has a lease") { session.lease != nil }
            let lease = try await leases.take(phone, for: .broker, seconds: 60)
            leases.endCall(try leases.beginCall(of: phone, by: Principal.broker.leaseHolder))

            // No `LostClaimForwarder` runs, so the end of the claim is never reported.
            clock.advance(by: .seconds(9))

            let error = #expect(throws: AccessError.self) {
                try leases.beginCall(of: phone, by: Principal.broker.leaseHolder)
            }
            #expect(error?.description.hasPrefix("your lease \(lease.id) ended at 2") == true)
            #expect(error?.description.contains("because \(LeaseConflict.lostRegistry)") == true)
        }
    }

    @Test func `a claim that another host deleted or replaced does not prevent the next lease`() async throws {
        let (lab2, own) = (try claim("shop", by: "lab2"), try claim("shop.lab1", by: "lab1"))
        let key = TeamKey.claim(own.target).text
        let lease = LeaseClaim(
            target: .endpoint(lab2.claim.endpoint),
            lease: "l1",
            endpoint: lab2.claim.endpoint,
            device: nil,
            holder: LeaseHolder(key: "uid:1", name: SanitizedText("user 1"), isAgent: false),
            seconds: 60,
            note: nil
        )
        try await running {
            try await claims.acquire(lease)
            _ = try await store.write([.delete(key: key)], if: nil)

            try await claims.acquire(lease)
            #expect(try await store.list(key).entries.count == 1)

            let pin = try #require(KeyPin(digest: Array(repeating: 2, count: KeyPin.byteCount)))
            try await TeamAuthority(store: store).add(TeamMember(name: lab2.claim.host, key: pin, addedAt: Date()))
            let foreign = try TeamCoding.bytes(of: lab2.claim, for: .claim(own.target))
            _ = try await store.write([.put(key: key, value: foreign, lease: nil)], if: nil)
            let error = await #expect(throws: LeaseClaimError.self) { try await claims.acquire(lease) }
            #expect(error == .held(lab2.claim))

            _ = try await store.write([.delete(key: key)], if: nil)
            try await claims.acquire(lease)
            #expect(try await store.list(key).entries.count == 1)
        }
    }
}
