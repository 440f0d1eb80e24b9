import FoundationEssentials
import Glibc
import Model
import TestSupport
import Testing

@testable import AccessControl

/// A process that is killed while it pairs, and what the next one finds.
@Suite struct CrashTests {
    /// What the process was told is done.
    private struct Told {
        var created: [Token] = []
        var redeemed: [(invite: String, grant: Token)] = []
        var rotated: [(old: Token, new: Token)] = []
        var revoked: Set<String> = []

        init(_ lines: [String]) throws {
            for line in lines {
                let words = line.split(separator: " ")
                switch words[0] {
                case "created": created.append(try Token(words[1]))
                case "redeemed": redeemed.append((String(words[1]), try Token(words[2])))
                case "rotated": rotated.append((try Token(words[1]), try Token(words[2])))
                default: revoked.insert(String(words[1]))
                }
            }
        }
    }

    /// When to kill it, if it does not do it itself: some time after it began, or after it had done something.
    private struct Kill {
        let pause: Duration
        let isOnceReady: Bool
    }

    /// One life of the process, in a folder in which it may have died before.
    private func live(
        _ scratch: ScratchFolder,
        _ name: String,
        _ arguments: [String],
        until moment: Kill? = nil
    ) async throws -> Told {
        let folder = try scratch.makeFolder(name)
        chmod(folder, 0o700)
        let path = try Executable.built("PairingCrash")
        let program = try await Program(path, [folder] + arguments, in: scratch)
        if let moment {
            if moment.isOnceReady { try await program.waitForLine("created") }
            try await Task.sleep(for: moment.pause)
            program.kill()
        }
        #expect(try await program.exitStatus() == .signalled(SIGKILL), "\(name): \(program.story)")
        for await _ in program.transcript.elements() {}
        return try Told(program.output)
    }

    /// Nothing that was told in any life is lost, and nothing is half done.
    private func check(_ folder: String, _ lives: [Told], _ name: String) async throws {
        let store = try AccessStore(in: folder, logger: Bench.quiet)
        for told in lives { try await check(told, store, name) }
        try await checkWholeness(store, folder, name)
        for told in lives { try await checkRetry(told, store, name) }
        try await store.close()
    }

    private func check(_ told: Told, _ store: AccessStore, _ name: String) async throws {
        let ledger = await store.ledger
        let now = store.now()
        let origin = RequestSource.unix(uid: 0)
        func accepts(_ token: Token) -> Bool {
            if case .accepted = ledger.judge(token, from: origin, at: now) { return true }
            return false
        }
        for invite in told.created { #expect(ledger.invites[invite.id] != nil, "\(name): an invite is lost") }
        let replaced = Dictionary(uniqueKeysWithValues: told.rotated.map { ($0.old.id, $0.new) })
        for (invite, grant) in told.redeemed {
            #expect(ledger.invites[invite]?.end == .spent, "\(name): a spent invite is good again")
            let isLast = told.redeemed.last?.invite == invite
            guard ledger.grants[grant.id] != nil else {
                Issue.record("\(name): a grant is lost")
                continue
            }
            if told.revoked.contains(grant.id) {
                #expect(ledger.grants[grant.id]?.end == .revoked, "\(name): a revoked grant is back")
            } else if !isLast {
                #expect(accepts(replaced[grant.id] ?? grant), "\(name): a grant is not accepted")
            }
        }
        for (old, new) in told.rotated {
            #expect(!accepts(old), "\(name): a replaced secret counts")
            if !told.revoked.contains(new.id), told.redeemed.last?.grant.id != new.id {
                #expect(accepts(new), "\(name): a new secret is lost")
            }
        }
    }

    /// Rows and log say the same.
    private func checkWholeness(_ store: AccessStore, _ folder: String, _ name: String) async throws {
        let report = try await store.verifyAudit()
        #expect(report.broken == nil, "\(name): \(String(describing: report.broken))")
        let events = try AuditSegments.lines(after: 0, limit: .max, in: folder)
            .map { try JSONCoding.decoder().decode(AuditEntry.self, from: $0).event }
        let ledger = await store.ledger
        for invite in ledger.invites.values {
            #expect(ledger.given(by: invite.id).count == invite.used, "\(name): a spent invite without its grant")
        }
        let redeemed = events.filter { $0.action == .redeemed }.compactMap(\.grant)
        #expect(Set(redeemed) == Set(ledger.grants.keys) && redeemed.count == ledger.grants.count, "\(name)")
        #expect(
            Set(events.filter { $0.action == .invited }.compactMap(\.invite)) == Set(ledger.invites.keys),
            "\(name)"
        )
        let rotated = events.filter { $0.action == .rotated }.compactMap(\.grant)
        #expect(rotated.count == ledger.grants.values.reduce(0) { $0 + $1.retired.count }, "\(name)")
        let revoked = events.filter { $0.action == .revoked }.flatMap { $0.ended ?? [] }
        #expect(Set(revoked) == Set(ledger.grants.values.filter { $0.end != nil }.map(\.id)), "\(name)")
    }

    /// The client whose reply got lost asks again, and has its grant.
    private func checkRetry(_ told: Told, _ store: AccessStore, _ name: String) async throws {
        guard let invite = told.created.last, !told.redeemed.contains(where: { $0.invite == invite.id }) else { return }
        let round = told.created.count
        let client = Redemption(client: Data("client of round \(round)".utf8), name: SanitizedText("client"))
        let (grant, token) = try await store.redeem(invite, for: client, from: .unix(uid: 0))
        #expect(try await store.authenticate(token, from: .unix(uid: 0)).id == grant.id, "\(name)")
        #expect(await store.ledger.given(by: invite.id).count == 1, "\(name): a retry made a second grant")
    }

    @Test(arguments: ["create", "redeem", "rotate", "revoke"])
    func `a kill at any point of an operation loses nothing that was told, and leaves nothing half done`(
        operation: String
    ) async throws {
        try await withScratchFolder { scratch in
            for point in FailurePoint.allCases {
                let name = "\(operation)-\(point.rawValue)"
                let told = try await live(scratch, name, [operation, point.rawValue, "2"])
                try await check(scratch.file(name), [told], name)
            }
        }
    }

    /// The first life of a folder ends somewhere in its work, the four after it there or while they put in order what the
    /// one before left.
    @Test func `a kill at a random moment loses nothing either, also where the start before it was killed`()
        async throws
    {
        try await withScratchFolder { scratch in
            var random = SeededGenerator(seed: 4)
            for number in 0..<Scale.pick(short: 4, soak: 400) {
                let name = "random-\(number)"
                var lives: [Told] = []
                for life in 0..<5 {
                    let pause = Duration.microseconds(Int.random(in: 0...60_000, using: &random))
                    lives.append(try await live(scratch, name, [], until: Kill(pause: pause, isOnceReady: life == 0)))
                }
                try await check(scratch.file(name), lives, name)
                try FileManager.default.removeItem(atPath: scratch.file(name))
            }
        }
    }
}
