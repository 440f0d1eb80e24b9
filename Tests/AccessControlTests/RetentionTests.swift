import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import AccessControl

/// Deletion of old records, and limits on the number of records.
@Suite(.scratchFolder) struct RetentionTests {
    private let scratch = ScratchFolder.current

    private static func invite(_ number: Int, isOver: Bool, under parent: String? = nil) -> InviteRecord {
        InviteRecord(
            id: "i\(number)",
            digest: Data(),
            permissions: Fixture.reader,
            maxUses: 1,
            createdBy: Fixture.owner,
            parent: parent,
            createdAt: MonotonicTime(milliseconds: 0),
            expiresAt: MonotonicTime(milliseconds: Int64(number)),
            grantLifetimeSeconds: 60,
            grantIdleSeconds: 60,
            binding: nil,
            endReason: isOver ? .revoked : nil
        )
    }

    @Test func `ended records are deleted after a day, and the log keeps their entries`() async throws {
        let clock = TestClock()
        var store = try Fixture.store(in: scratch, clock: clock)
        let (_, open) = try await store.invites.create()
        let (grant, _) = try await store.grant()
        let (living, _) = try await store.grant(lifetime: 2_000_000, idle: 2_000_000, to: "other")
        try await store.grants.revoke(grant.id)

        clock.pass(86_000)
        _ = await ExpirationService(of: store).expire()
        #expect(await store.grants.list.count == 2)
        #expect(await store.invites.list.count == 3)

        clock.pass(1_001)
        _ = await ExpirationService(of: store).expire()
        #expect(await store.grants.list.map(\.id) == [living.id])
        #expect(await store.invites.list.isEmpty, "ten minutes and a day are over")
        try await store.close()
        store = try Fixture.store(in: scratch, clock: clock)
        #expect(await store.grants.list.map(\.id) == [living.id])
        #expect(await store.invites.list.isEmpty)
        await #expect(throws: AccessError.refused) { try await store.invites.redeem(open, as: "late") }
        let log = try Fixture.audit(in: scratch)
        #expect(log.contains { $0.event.ended == [grant.id] })
    }

    @Test func `at the limit the record that ended first is purged, and open records never are`() throws {
        var change = ChangeSet()
        change.invites = (0..<AccessState.limit).map { Self.invite($0, isOver: $0 == 7 || $0 == 9) }
        var state = AccessState()
        state.apply(change)

        #expect(try state.evictions(forInviteUnder: nil) == ["i7"])
        change = ChangeSet()
        change.purged = ["i7", "i9"]
        change.invites = [Self.invite(100_000, isOver: false), Self.invite(100_001, isOver: false)]
        state.apply(change)
        #expect(throws: AccessError.self) { try state.evictions(forInviteUnder: nil) }
    }

    @Test func `grant holders cannot use the places reserved for owners`() throws {
        var change = ChangeSet()
        change.invites = (0..<AccessState.limit - AccessState.ownerReserve).map {
            Self.invite($0, isOver: false, under: "guest")
        }
        var state = AccessState()
        state.apply(change)

        #expect(throws: AccessError.self) { try state.evictions(forInviteUnder: "guest") }
        #expect(try state.evictions(forInviteUnder: nil).isEmpty)
    }
}
