import FoundationEssentials
import Glibc
import Model
import Samples
import TestSupport
import Testing

@testable import AccessControl

/// Kills a process during access control operations, and checks the state that the next process finds.
@Suite(.scratchFolder) struct CrashTests {
    private let scratch = ScratchFolder.current

    /// The operations that the process was told are complete.
    private struct CompletedOperations {
        var created: [Token] = []
        var redeemed: [(invite: String, grant: Token)] = []
        var revoked: Set<String> = []

        init(_ lines: [String]) throws {
            for line in lines {
                let words = line.split(separator: " ")
                switch words[0] {
                case "created": created.append(try Token(words[1]))
                case "redeemed": redeemed.append((String(words[1]), try Token(words[2])))
                default: revoked.insert(String(words[1]))
                }
            }
        }
    }

    /// Time of the kill, for a process that does not kill itself: after a delay from its start or from its first
    /// operation.
    private struct Kill {
        let pause: Duration
        let isOnceReady: Bool
    }

    /// Runs the process once, in a folder where an earlier process may have been killed.
    private func run(
        _ scratch: ScratchFolder,
        named name: String,
        _ arguments: [String],
        _ environment: [String: String] = [:],
        until moment: Kill? = nil
    ) async throws -> CompletedOperations {
        let folder = try scratch.makeFolder(name)
        chmod(folder, 0o700)
        let path = try Executable.built("PairingCrash")
        let program = try await Program(path, [folder] + arguments, in: scratch, environment: environment)
        if let moment {
            if moment.isOnceReady { try await program.waitForLine("created") }
            try await Task.sleep(for: moment.pause)
            program.kill()
        }
        #expect(try await program.exitStatus() == .signalled(SIGKILL), "\(name): \(program.log)")
        for await _ in program.transcript.elements() {}
        return try CompletedOperations(program.output)
    }

    /// Checks that no completed operation of any run is lost, and that none is incomplete.
    private func check(_ folder: String, _ runs: [CompletedOperations], named name: String) async throws {
        let store = try AccessStore(in: folder, logger: .quiet)
        for completed in runs { try await check(completed, store, named: name) }
        try await checkConsistency(store, folder, named: name)
        for completed in runs { try await checkRetry(completed, store, named: name) }
        try await store.close()
    }

    private func check(_ completed: CompletedOperations, _ store: AccessStore, named name: String) async throws {
        let state = await store.state
        let now = store.now()
        let origin = RequestSource.unix(uid: 0)
        func accepts(_ token: Token) -> Bool {
            if case .accepted = state.verify(token, from: origin, at: now) { return true }
            return false
        }
        for invite in completed.created { #expect(state.invites[invite.id] != nil, "\(name): an invite is lost") }
        for (invite, grant) in completed.redeemed {
            #expect(state.invites[invite]?.endReason == .spent, "\(name): a spent invite is good again")
            let isLast = completed.redeemed.last?.invite == invite
            guard state.grants[grant.id] != nil else {
                Issue.record("\(name): a grant is lost")
                continue
            }
            if completed.revoked.contains(grant.id) {
                #expect(state.grants[grant.id]?.endReason == .revoked, "\(name): a revoked grant is back")
            } else if !isLast {
                #expect(accepts(grant), "\(name): a grant is not accepted")
            }
        }
    }

    /// Checks that database and audit log agree.
    private func checkConsistency(_ store: AccessStore, _ folder: String, named name: String) async throws {
        let report = try await store.verifyAudit()
        #expect(report.firstInvalidEntry == nil, "\(name): \(String(describing: report.firstInvalidEntry))")
        let events = try AuditSegments.lines(after: 0, limit: .max, in: folder)
            .map { try JSONCoding.decoder().decode(AuditEntry.self, from: $0).event }
        let state = await store.state
        for invite in state.invites.values {
            #expect(
                state.grantRecords(fromInvite: invite.id).count == invite.useCount,
                "\(name): a spent invite without its grant"
            )
        }
        let redeemed = events.filter { $0.action == .redeemed }.compactMap(\.grant)
        #expect(Set(redeemed) == Set(state.grants.keys) && redeemed.count == state.grants.count, "\(name)")
        #expect(
            Set(events.filter { $0.action == .invited }.compactMap(\.invite)) == Set(state.invites.keys),
            "\(name)"
        )
        let revoked = events.filter { $0.action == .revoked }.flatMap { $0.ended ?? [] }
        #expect(Set(revoked) == Set(state.grants.values.filter { $0.endReason != nil }.map(\.id)), "\(name)")
    }

    /// Checks that a client whose response was lost gets its grant by repeating the request.
    private func checkRetry(_ completed: CompletedOperations, _ store: AccessStore, named name: String) async throws {
        guard let invite = completed.created.last, !completed.redeemed.contains(where: { $0.invite == invite.id })
        else { return }
        let round = completed.created.count
        let redemption = RedemptionSpec(
            token: invite.reveal(),
            client: "client of round \(round)",
            name: SanitizedText("client")
        )
        let (grant, token) = try await store.invites.redeem(redemption, from: .unix(uid: 0))
        #expect(try await store.grants.authenticate(token, from: .unix(uid: 0)).id == grant.id, "\(name)")
        #expect(
            await store.state.grantRecords(fromInvite: invite.id).count == 1,
            "\(name): a retry made a second grant"
        )
    }

    @Test(arguments: ["create", "redeem", "revoke"])
    func `a kill at any failure point loses no completed operation and leaves none incomplete`(
        operation: String
    ) async throws {
        for point in FailurePoint.allCases {
            let name = "\(operation)-\(point.rawValue)"
            let completed = try await run(scratch, named: name, [operation, point.rawValue, "2"])
            try await check(scratch.file(name), [completed], named: name)
        }
    }

    /// In the mode `power`, what was not synced is lost; in `torn`, only the content of files is.
    @Test(.needs(.compiler), arguments: ["kill", "short", "power", "torn"])
    func `a cut at any system call loses no completed operation and leaves none incomplete`(mode: String) async throws {
        let tests = #filePath.split(separator: "/").dropLast(2).joined(separator: "/")
        let library = scratch.file("cutpoint.so")
        let source = "/\(tests)/EndToEndTests/Crash/cutpoint.c"
        try await Program.run("cc", ["-shared", "-fPIC", "-o", library, source], in: scratch)
        var random = SeededGenerator(seed: 35)
        // Within 400 calls, several segments of the audit log begin.
        for call in (1...400).shuffled(using: &random).prefix(Scale.pick(short: 4, soak: 400)) {
            let name = "\(mode)-\(call)"
            let environment = [
                "LD_PRELOAD": library, "CUT_PROGRAM": "PairingCrash", "CUT_FOLDER": scratch.file(name),
                "CUT_LOG": scratch.file("\(name).calls"), "CUT_AT": "\(call)", "CUT_MODE": mode,
                "CUT_KEEP": try scratch.makeFolder("\(name).kept"),
            ]
            let completed = try await run(scratch, named: name, [], environment)
            try await check(scratch.file(name), [completed], named: name)
        }
    }

    /// The first run of a folder is killed during its work. The four later runs are killed there or during recovery.
    @Test func `repeated kills at random times lose no completed operation`()
        async throws
    {
        var random = SeededGenerator(seed: 4)
        for number in 0..<Scale.pick(short: 4, soak: 400) {
            let name = "random-\(number)"
            var runs: [CompletedOperations] = []
            for attempt in 0..<5 {
                let pause = Duration.microseconds(Int.random(in: 0...60_000, using: &random))
                runs.append(
                    try await run(scratch, named: name, [], until: Kill(pause: pause, isOnceReady: attempt == 0))
                )
            }
            try await check(scratch.file(name), runs, named: name)
            try FileManager.default.removeItem(atPath: scratch.file(name))
        }
    }
}
