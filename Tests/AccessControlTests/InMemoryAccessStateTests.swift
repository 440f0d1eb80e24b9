import Crypto
import FoundationEssentials
import Model
import Synchronization
import Testing

@testable import AccessControl

/// Decisions in memory, without a disk.
@Suite struct LiveAccessTests {
    private let clock = TestClock()
    private let grant = Token(random: .grant)
    private let invite = Token(random: .invite)

    private var time: MonotonicWallClock { MonotonicWallClock(highWater: nil, reading: clock.read()) }

    /// A state with one grant and one invite, which both live for a minute.
    private var state: AccessState {
        let now = time.now
        var change = ChangeSet()
        change.grants = [.sample(grant.id, digest: Data(grant.digest), at: now)]
        change.invites = [
            InviteRecord(
                id: invite.id,
                digest: Data(invite.digest),
                permissions: Fixture.reader,
                maxUses: 1,
                createdBy: Fixture.owner,
                parent: nil,
                createdAt: now,
                expiresAt: now + 60,
                grantLifetimeSeconds: 60,
                grantIdleSeconds: 60,
                binding: nil
            )
        ]
        var state = AccessState()
        state.apply(change)
        return state
    }

    @Test func `an expired grant authenticates no client and has no new session`() throws {
        let live = InMemoryAccessState(state, time, reading: clock.read)
        guard case .accepted = live.verify(grant, from: Fixture.loopback).0 else {
            Issue.record("a valid token is not accepted")
            return
        }
        live.unregister(try live.register(under: grant.id) {})

        clock.pass(60)

        guard case .refused("expired grant") = live.verify(grant, from: Fixture.loopback).0 else {
            Issue.record("an expired grant is accepted")
            return
        }
        #expect(!live.isLive(grant.id))
        #expect(throws: AccessError.refused) { try live.register(under: grant.id) {} }
    }

    @Test func `a delivery does not run after a permission changed`() throws {
        let live = InMemoryAccessState(state, time, reading: clock.read)
        let generation = live.generation
        #expect(live.deliver(under: grant.id, since: generation) { true } == true)
        let change = try state.revoke(.one(grant.id), by: Fixture.owner, from: Fixture.socket, at: time.now)

        live.content.withLock { $0.apply(change) }

        #expect(live.deliver(under: nil, since: generation) { true } == nil)
        #expect(live.deliver(under: nil, since: live.generation) { true } == true)
        #expect(live.deliver(under: grant.id, since: live.generation) { true } == nil)
    }

    @Test func `a redemption is decided from the state, and spends the invite only in its change`() throws {
        let keys = DerivedKeys(.init(size: .bits256))
        var state = state
        func redeem(_ token: Token) throws -> InviteRedemptionEvaluator.Outcome {
            let evaluator = InviteRedemptionEvaluator(
                state: state,
                keys: keys,
                source: Fixture.loopback,
                key: nil,
                now: time.now
            )
            return try evaluator.redeem(token, for: Fixture.redemption(of: token, as: "a"))
        }
        guard case .refused("wrong secret", let failure?) = try redeem(Fixture.forged(invite)),
            case .granted(let change, let record, let token) = try redeem(invite)
        else {
            Issue.record("the invite gives no grant")
            return
        }
        #expect(failure.invites.map(\.failedAttempts) == [1])
        #expect(state.invites[invite.id]?.useCount == 0)

        state.apply(change)

        #expect(state.invites[invite.id]?.endReason == .spent)
        guard case .again(let same, let repeated) = try redeem(invite) else {
            Issue.record("the same client does not get its grant again")
            return
        }
        #expect(same == record && repeated.reveal() == token.reveal())
    }
}
