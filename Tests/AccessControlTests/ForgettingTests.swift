import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import AccessControl

/// What is not kept for ever, and what nobody can fill.
@Suite struct ForgettingTests {
    private static func invite(_ number: Int, isOver: Bool, under parent: String? = nil) -> InviteRecord {
        InviteRecord(
            id: "i\(number)",
            digest: Data(),
            permissions: Bench.reader,
            uses: 1,
            createdBy: Bench.owner,
            parent: parent,
            created: MonotonicTime(milliseconds: 0),
            expires: MonotonicTime(milliseconds: Int64(number)),
            life: 60,
            idle: 60,
            binding: nil,
            end: isOver ? .revoked : nil
        )
    }

    @Test func `what ended is forgotten a day later, on the disk too, and the log has it still`() async throws {
        try await withScratchFolder { scratch in
            let clock = TestClock()
            var store = try Bench.store(in: scratch, clock: clock)
            let (_, open) = try await store.invite(InviteTerms(Bench.reader), by: Bench.owner, from: Bench.socket)
            let (grant, _) = try await store.grant()
            let (living, _) = try await store.grant(lifetime: 2_000_000, idle: 2_000_000, to: "other")
            try await store.revoke(.one(grant.id), by: Bench.owner, from: Bench.socket)

            clock.pass(86_000)
            _ = await store.sweep()
            #expect(await store.grants.count == 2)
            #expect(await store.invites.count == 3)

            clock.pass(1_001)
            _ = await store.sweep()
            #expect(await store.grants.map(\.id) == [living.id])
            #expect(await store.invites.isEmpty, "ten minutes and a day are over")
            try await store.close()
            store = try Bench.store(in: scratch, clock: clock)
            #expect(await store.grants.map(\.id) == [living.id])
            #expect(await store.invites.isEmpty)
            await #expect(throws: AccessError.refused) {
                try await store.redeem(open, for: Bench.client("late"), from: Bench.loopback)
            }
            let log = try Bench.audit(in: scratch)
            #expect(log.contains { $0.event.ended == [grant.id] })
        }
    }

    @Test func `where there is no room what ended first goes, and what stands never does`() throws {
        var change = ChangeSet()
        change.invites = (0..<AccessState.limit).map { Self.invite($0, isOver: $0 == 7 || $0 == 9) }
        var ledger = AccessState()
        ledger.apply(change)

        #expect(try ledger.room(forInviteUnder: nil) == ["i7"])
        change = ChangeSet()
        change.forgotten = ["i7", "i9"]
        change.invites = [Self.invite(100_000, isOver: false), Self.invite(100_001, isOver: false)]
        ledger.apply(change)
        #expect(throws: AccessError.self) { try ledger.room(forInviteUnder: nil) }
    }

    @Test func `who was let in cannot fill the places that are kept for owners`() throws {
        var change = ChangeSet()
        change.invites = (0..<AccessState.limit - AccessState.reserve).map {
            Self.invite($0, isOver: false, under: "guest")
        }
        var ledger = AccessState()
        ledger.apply(change)

        #expect(throws: AccessError.self) { try ledger.room(forInviteUnder: "guest") }
        #expect(try ledger.room(forInviteUnder: nil).isEmpty)
    }
}
