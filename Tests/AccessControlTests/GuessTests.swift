import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import AccessControl

/// An attacker who guesses tokens, including near misses.
@Suite(.scratchFolder) struct GuessTests {
    private let scratch = ScratchFolder.current

    /// A valid grant, an ended grant and an open invite.
    private struct Targets {
        let store: AccessStore
        let good: Token
        let other: Token
        let ended: Token
        var invite: Token
        var guessesLeft = InviteRedemptionEvaluator.wrongLimit
        var invites = 1
        var random = SeededGenerator(seed: 5)

        init(_ store: AccessStore) async throws {
            self.store = store
            good = try await store.grant(to: "good").1
            other = try await store.grant(to: "other").1
            ended = try await store.grant(to: "ended").1
            try await store.grants.revoke(ended.id)
            invite = try await store.invites.create().1
        }

        /// Returns the token with one letter of its secret changed and a matching checksum.
        mutating func nearMiss(of token: Token) -> Token {
            var secret = Array(token.reveal().split(separator: "_")[2].utf8)
            let place = Int.random(in: secret.indices, using: &random)
            let letter = Base62.letters[Int.random(in: 0..<62, using: &random)]
            secret[place] = letter == secret[place] ? Base62.letters[letter == UInt8(ascii: "0") ? 1 : 0] : letter
            return Token(token.kind, id: token.id, secret: String(decoding: secret, as: UTF8.self))
        }

        mutating func guess(_ number: Int) async throws -> Bool {
            if number.isMultiple(of: 1_000) { return try await guessInvite() }
            let token =
                switch number % 5 {
                case 0: Token(random: .grant)
                case 1: Token(random: .grant).withID(good.id)
                case 2: nearMiss(of: good)
                case 3: other.withID(good.id)
                default: ended
                }
            let origin = number.isMultiple(of: 2) ? Fixture.loopback : .unix(uid: 1_001)
            return (try? await store.grants.authenticate(token, from: origin)) != nil
        }

        /// Tries an invite. An invite is burnt after five attempts and then replaced, so every guess is made at an open
        /// invite.
        private mutating func guessInvite() async throws -> Bool {
            if guessesLeft == 0 {
                invite = try await store.invites.create().1
                guessesLeft = InviteRedemptionEvaluator.wrongLimit
                invites += 1
            }
            guessesLeft -= 1
            let token = guessesLeft.isMultiple(of: 2) ? nearMiss(of: invite) : Fixture.forged(invite)
            return (try? await store.invites.redeem(token, as: "x")) != nil
        }
    }

    @Test func `guesses are never accepted, and only the first few are written to the disk`() async throws {
        let store = try Fixture.store(in: scratch)
        var targets = try await Targets(store)
        var accepted = 0
        for number in 0..<Scale.pick(short: 100_000, soak: 10_000_000) {
            if try await targets.guess(number) { accepted += 1 }
        }

        #expect(accepted == 0)
        _ = try await store.grants.authenticate(targets.good)
        // Every created and burnt invite, and one minute of grant guesses for each of two clients.
        let lines = try Fixture.audit(in: scratch).count
        let limit =
            7 + targets.invites * (1 + InviteRedemptionEvaluator.wrongLimit) + 2 * FailedAttemptLimiter.limit
        #expect(lines <= limit, "\(lines) of at most \(limit)")
        #expect(await store.invites.list.filter { $0.endReason == .burnt }.count >= targets.invites - 1)
    }
}
