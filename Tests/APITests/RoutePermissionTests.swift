import FoundationEssentials
import Model
import AccessControl
import Testing

@testable import API

@Suite struct RoutePermissionTests {
    private func visitor(
        _ scopes: Set<Scope>,
        _ binding: GrantBinding = .bearer,
        from origin: RequestSource = .tcp(address: "127.0.0.1")
    ) -> Principal {
        let grant = Grant(
            id: "abcdefgh",
            name: SanitizedText("test"),
            permissions: Permissions(scopes, on: .all),
            binding: binding,
            parent: nil,
            invite: nil,
            created: Date(),
            expires: Date(),
            lastUsed: Date(),
            idleSeconds: 1,
            end: nil
        )
        return Principal(standing: .grant(grant), origin: origin, caller: .grant(grant.id), user: 1_000)
    }

    private let stranger = Principal(standing: .stranger, origin: .tcp(address: "::1"), caller: .stranger, user: nil)
    private let user = Principal(standing: .user, origin: .unix(uid: 65_534), caller: .stranger, user: 65_534)
    private let owner = Principal(standing: .owner, origin: .unix(uid: 0), caller: .stranger, user: 0)

    private func isIn(_ visitor: Principal, _ access: RoutePermission) -> Bool { (try? access.check(visitor)) != nil }

    @Test func `whoever has shown nothing gets what is for anyone, and no more`() {
        let open = RouteTable.all.filter { isIn(stranger, $0.access) }.map(\.path)

        #expect(
            Set(open) == ["/health", "/openapi.json", "/v1/invites/redeem", "/v1/endpoints/{id}/secret"],
            "the last one looks for an invite inside"
        )
        #expect(throws: AccessError.refused) { try RoutePermission.owner.check(stranger) }
    }

    @Test func `another user may ask, too`() {
        let open = RouteTable.all.filter { isIn(user, $0.access) && !isIn(stranger, $0.access) }.map(\.path)

        #expect(Set(open) == ["/v1/requests", "/v1/requests/poll"])
    }

    @Test func `an owner may do everything`() {
        #expect(RouteTable.all.allSatisfy { isIn(owner, $0.access) })
    }

    @Test(arguments: Scope.allCases) func `a scope opens its routes and no other`(scope: Scope) {
        let visitor = visitor([scope])

        for case .scope(let wanted) in RouteTable.all.map(\.access) {
            #expect(isIn(visitor, .scope(wanted)) == (wanted == scope))
        }
        #expect(!isIn(visitor, .owner))
    }

    @Test func `admin counts on the unix socket, for the user to whom it is bound, and nowhere else`() {
        #expect(isIn(visitor([.admin], .user(1_000), from: .unix(uid: 1_000)), .owner))
        #expect(!isIn(visitor([.admin], .bearer, from: .unix(uid: 1_000)), .owner))
        #expect(!isIn(visitor([.admin], .user(1_000), from: .unix(uid: 1_001)), .owner))
        #expect(!isIn(visitor([.admin], .user(1_000)), .owner))
    }
}
