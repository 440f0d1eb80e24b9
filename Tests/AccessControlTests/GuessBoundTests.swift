import Foundation
import Model
import TestSupport
import Testing

@testable import AccessControl

/// The statements of docs/security.md about guessing and the audit log, calculated from the constants of the code.
@Suite(.scratchFolder) struct GuessBoundTests {
    private let scratch = ScratchFolder.current
    /// Far more than one broker can answer.
    private static let guessesPerSecond = 1_000_000
    private static let letters = Double(Base62.letters.count)

    private func document() throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return try String(contentsOf: root.appending(path: "docs/security.md"), encoding: .utf8)
    }

    private func raised(_ number: String) -> String {
        let signs: [Character: Character] = [
            "0": "⁰", "1": "¹", "2": "²", "3": "³", "4": "⁴", "5": "⁵", "6": "⁶", "7": "⁷", "8": "⁸", "9": "⁹",
            "-": "⁻",
            ".": "·",
        ]
        return String(number.compactMap { signs[$0] })
    }

    private func powerOfTwo(_ exponent: Double) -> String { "2" + raised(String(format: "%.1f", exponent)) }

    private func powerOfTen(_ number: Double, digits: Int) -> String {
        let exponent = floor(log10(number))
        let factor = String(format: "%.\(digits)f", number / pow(10, exponent))
        return "\(factor) × 10" + raised(String(Int(exponent)))
    }

    @Test func `security.md states the odds of guessing an invite`() throws {
        let length = TokenFormat.Kind.invite.secretLength
        let bits = Double(length) * log2(Self.letters)
        let guesses = InviteRedemptionEvaluator.wrongLimit
        let usual = InviteSpec.defaultLifetime / 60
        let longest = InviteSpec.lifetimes.upperBound / 3_600
        let row = """
            | invite (`pbi_…`; \(usual) minutes, at most \(longest) hours) | \(length) letters of 62: \
            \(Int(bits.rounded())) bits | \(guesses) burn it | \(guesses) in 62\(raised("\(length)")), or \
            \(powerOfTwo(log2(Double(guesses)) - bits)), in its whole life |
            """

        #expect(try document().contains(row), "\(row)")
    }

    @Test func `security.md states the odds of guessing a grant`() throws {
        let length = TokenFormat.Kind.grant.secretLength
        let bits = Double(length) * log2(Self.letters)
        let usual = InviteSpec(Fixture.reader).defaultGrantLifetime / 3_600
        let days = InviteSpec.grantLifetimes.upperBound / 86_400
        let guesses = Double(Self.guessesPerSecond) * Double(InviteSpec.grantLifetimes.upperBound)
        let row = """
            | grant (`pbg_…`; \(usual) hours, at most \(days) days) | \(length) letters of 62: \(Int(bits.rounded())) bits \
            | any number | with a million a second for \(days) days \(powerOfTen(guesses, digits: 1)) in \
            62\(raised("\(length)")), or \(powerOfTwo(log2(guesses) - bits)) |
            """

        #expect(try document().contains(row), "\(row)")
    }

    @Test func `security.md states the odds of guessing a request`() throws {
        let length = TokenFormat.Kind.invite.secretLength
        let bits = Double(length) * log2(Self.letters)
        let minutes = AccessRequestQueue.lifetime / 60
        let guesses = Double(Self.guessesPerSecond) * Double(AccessRequestQueue.lifetime)
        let deviceCode = """
            | device code of a request (its requester's; \(minutes) minutes) | \(length) letters of 62: \(Int(bits.rounded())) bits \
            | any number until it is answered | with a million a second \(powerOfTen(guesses, digits: 0)) in \
            62\(raised("\(length)")), or \(powerOfTwo(log2(guesses) - bits)) |
            """
        let codes = pow(Double(UserCode.letters.count), Double(UserCode.length))
        let limit = UserCodeAttemptLimiter.limit
        let hours = UserCodeAttemptLimiter.window / 3_600
        let userCode = """
            | user code of a request (`WDJB-MJHT`; \(minutes) minutes; only owners may type it) | \(UserCode.length) letters of \
            \(UserCode.letters.count): \(String(format: "%.1f", log2(codes))) bits | \(limit) in an hour close all \
            requests until `patchbay requests unlock` | \(limit) in \(UserCode.letters.count)\
            \(raised("\(UserCode.length)")), or 1 in \(powerOfTen(codes / Double(limit), digits: 2)), in an hour, for each \
            open request |
            """

        #expect(hours == 1)
        #expect(try document().contains(deviceCode), "\(deviceCode)")
        #expect(try document().contains(userCode), "\(userCode)")
    }

    @Test func `an invite allows only its number of guesses, from any number of clients and for any time`()
        async throws
    {
        let clock = TestClock()
        var store = try Fixture.store(in: scratch, clock: clock)
        let lifetime = InviteSpec.lifetimes.upperBound
        let spec = InviteSpec(Fixture.reader, maxUses: 100, lifetimeSeconds: lifetime)
        let (_, invite) = try await store.invites.create(spec)
        var looked = 0
        for place in 0..<24 {
            let before = await store.invites.list.first?.failedAttempts
            let origin = place.isMultiple(of: 3) ? Fixture.loopback : .unix(uid: UInt32(place))
            _ = try? await store.invites.redeem(Fixture.forged(invite), as: "x", from: origin)
            if await store.invites.list.first?.failedAttempts != before { looked += 1 }
            clock.pass(Double(lifetime) / 25)
            try await store.close()
            store = try Fixture.store(in: scratch, clock: clock)
        }

        #expect(looked == InviteRedemptionEvaluator.wrongLimit)
        await #expect(throws: AccessError.self) {
            try await store.invites.redeem(invite, as: "a", from: Fixture.socket)
        }
    }

    @Test func `security.md states how fast other users can make the audit log grow`() async throws {
        let store = try Fixture.store(in: scratch)
        for _ in 0..<FailedAttemptLimiter.limit {
            _ = try? await store.grants.authenticate(Token(random: .grant), from: .unix(uid: .max))
        }
        let text = try Data(contentsOf: URL(filePath: scratch.file("audit.jsonl")))
        let lines = text.split(separator: UInt8(ascii: "\n"))
        let longest = lines.map { $0.count + 1 }.max() ?? 0
        let perDay = FailedAttemptLimiter.limit * 86_400 / FailedAttemptLimiter.window
        let megabytes = Int((Double(perDay * 400) / 1e6).rounded(.up))

        #expect(lines.count == FailedAttemptLimiter.limit)
        #expect(longest < 400, "\(longest)")
        let sentence = """
            with at most \(FailedAttemptLimiter.limit) lines a minute from one client, \(megabytes) MB a day
            """
        #expect(try document().contains(sentence), "\(sentence)")
    }
}
