import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import AccessControl

/// Somebody who tries tokens, near misses among them.
@Suite struct GuessTests {
    /// A grant that is good, one that has ended, an invite that is open.
    private struct Targets {
        let store: AccessStore
        let good: Token
        let other: Token
        let ended: Token
        var invite: Token
        var guessesLeft = AccessState.wrongLimit
        var invites = 1
        var random = SeededGenerator(seed: 5)

        init(_ store: AccessStore) async throws {
            self.store = store
            good = try await store.grant(to: "good").1
            other = try await store.grant(to: "other").1
            ended = try await store.grant(to: "ended").1
            try await store.revoke(.one(ended.id), by: Bench.owner, from: Bench.socket)
            invite = try await store.invite(InviteTerms(Bench.reader), by: Bench.owner, from: Bench.socket).1
        }

        /// The same token but for one letter of its secret, with the checksum that fits.
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
                case 1: Token(random: .grant).renamed(good.id)
                case 2: nearMiss(of: good)
                case 3: other.renamed(good.id)
                default: ended
                }
            let origin = number.isMultiple(of: 2) ? Bench.loopback : .unix(uid: 1_001)
            return (try? await store.authenticate(token, from: origin)) != nil
        }

        /// Each invite takes five and is then replaced, so that all of them are tried on one that is open.
        private mutating func guessInvite() async throws -> Bool {
            if guessesLeft == 0 {
                invite = try await store.invite(InviteTerms(Bench.reader), by: Bench.owner, from: Bench.socket).1
                guessesLeft = AccessState.wrongLimit
                invites += 1
            }
            guessesLeft -= 1
            let token = guessesLeft.isMultiple(of: 2) ? nearMiss(of: invite) : Bench.forged(invite)
            return (try? await store.redeem(token, for: Bench.client("x"), from: Bench.loopback)) != nil
        }
    }

    @Test func `a guess is never accepted, and costs the disk nothing after the first few`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            var targets = try await Targets(store)
            var accepted = 0
            for number in 0..<Scale.pick(short: 100_000, soak: 10_000_000) {
                if try await targets.guess(number) { accepted += 1 }
            }

            #expect(accepted == 0)
            _ = try await store.authenticate(targets.good, from: Bench.loopback)
            // Every invite that was made and burnt, and of the grants' guesses a minute's worth for each of two places.
            let lines = try Bench.audit(in: scratch).count
            let limit = 7 + targets.invites * (1 + AccessState.wrongLimit) + 2 * FailedAttemptLimiter.limit
            #expect(lines <= limit, "\(lines) of at most \(limit)")
            #expect(await store.invites.filter { $0.end == .burnt }.count >= targets.invites - 1)
        }
    }
}
