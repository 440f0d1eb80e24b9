import FoundationEssentials
import Glibc
import Model
import Samples
import SystemIO
import TestSupport
import Testing

@testable import AccessControl

/// Persistent state, including files that were changed from outside.
@Suite(.scratchFolder) struct PersistenceTests {
    private let scratch = ScratchFolder.current
    private static let database = AccessDatabase.name

    /// Fills a folder with a live grant, a revoked grant and a spent invite, and closes the store.
    private func fill(_ scratch: ScratchFolder, _ clock: TestClock) async throws -> (
        live: Token, dead: Token, spent: Token
    ) {
        let store = try Fixture.store(in: scratch, clock: clock)
        let (_, live) = try await store.grant(to: "live")
        let (_, spent) = try await store.invites.create()
        let (grant, dead) = try await store.invites.redeem(spent, as: "dead")
        try await store.grants.revoke(grant.id)
        try await store.close()
        clock.pass(120)
        return (live, dead, spent)
    }

    private func accepts(_ store: AccessStore, _ token: Token) async -> Bool {
        (try? await store.grants.authenticate(token)) != nil
    }

    private func redeems(_ store: AccessStore, _ token: Token) async -> Bool {
        (try? await store.invites.redeem(token, as: "thief")) != nil
    }

    @Test func `all state survives a restart`() async throws {
        let clock = TestClock()
        let (live, dead, spent) = try await fill(scratch, clock)
        let store = try Fixture.store(in: scratch, clock: clock)
        #expect(await accepts(store, live))
        #expect(await !accepts(store, dead))
        #expect(await !redeems(store, spent))
        #expect(await store.findings.isEmpty)
        #expect(try await store.verifyAudit().firstInvalidEntry == nil)
    }

    @Test func `all files are private to their owner, and no other files are created`() async throws {
        let old = umask(0)
        defer { umask(old) }
        let store = try Fixture.store(in: scratch)
        _ = try await store.grant()
        for name in try FileManager.default.contentsOfDirectory(atPath: scratch.path) {
            var status = stat()
            try #require(stat(scratch.file(name), &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600, "\(name)")
        }
        try await store.close()
        let left = try FileManager.default.contentsOfDirectory(atPath: scratch.path).sorted()
        #expect(left == ["access.key", Self.database, "audit.jsonl"])
    }

    @Test(arguments: [0o777, 0o770, 0o707, 0o722] as [mode_t])
    func `a folder that others can write is rejected`(mode: mode_t) async throws {
        chmod(scratch.path, mode)
        let error = #expect(throws: AccessError.self) { try Fixture.store(in: scratch) }
        #expect(error?.description.contains("\(scratch.path) can be written by others") == true)
    }

    @Test(arguments: ["access.sqlite", "access.key", "audit.jsonl"], [0o644, 0o640, 0o602] as [mode_t])
    func `a file that others can open is rejected`(name: String, mode: mode_t) async throws {
        _ = try await fill(scratch, TestClock())
        chmod(scratch.file(name), mode)
        let error = #expect(throws: AccessError.self) { try Fixture.store(in: scratch) }
        #expect(error?.description.contains("\(name) can be opened by others") == true)
    }

    @Test(.needs(.root), arguments: ["", "access.sqlite", "access.key", "audit.jsonl"])
    func `files and folders of another user are rejected`(name: String) async throws {
        _ = try await fill(scratch, TestClock())
        chown(scratch.file(name), 65_534, 65_534)
        let error = #expect(throws: AccessError.self) { try Fixture.store(in: scratch) }
        #expect(error?.description.contains("belongs to user 65534") == true)
    }

    @Test(arguments: ["access.sqlite", "access.key", "audit.jsonl", "access.sqlite-wal"])
    func `a symbolic link in place of a file is not followed`(name: String) async throws {
        _ = try await fill(scratch, TestClock())
        let target = try scratch.write("precious", to: "target")
        unlink(scratch.file(name))
        symlink(target, scratch.file(name))
        #expect(throws: AccessError.self) { try Fixture.store(in: scratch) }
        #expect(try String(contentsOf: URL(filePath: target), encoding: .utf8) == "precious")
    }

    @Test func `a second broker on the same folder is rejected`() async throws {
        let store = try Fixture.store(in: scratch)
        _ = try await store.grant()
        let error = #expect(throws: AccessError.self) { try Fixture.store(in: scratch) }
        #expect(error == .inUse(path: scratch.file(Self.database)))
    }

    @Test func `a wrong or missing key is rejected with the next step`() async throws {
        _ = try await fill(scratch, TestClock())
        let key = try Data(contentsOf: URL(filePath: scratch.file("access.key")))
        unlink(scratch.file("access.key"))
        let missing = #expect(throws: AccessError.self) { try Fixture.store(in: scratch) }
        #expect(missing == .keyMissing(path: scratch.file("access.key")))
        #expect(!FileManager.default.fileExists(atPath: scratch.file("access.key")))

        try PrivateFile.write(scratch.file("access.key"), Data(key.reversed()))
        #expect(throws: AccessError.self) { try Fixture.store(in: scratch) }
        try PrivateFile.write(scratch.file("access.key"), key)
        _ = try Fixture.store(in: scratch)
    }

    @Test func `an old copy of the database revives no permission`() async throws {
        let clock = TestClock()
        var store = try Fixture.store(in: scratch, clock: clock)
        let (dead, deadToken) = try await store.grant(to: "dead")
        let (_, live) = try await store.grant(to: "live")
        let (_, spent) = try await store.invites.create()
        let (_, burnt) = try await store.invites.create()
        try await store.close()
        let copy = try Data(contentsOf: URL(filePath: scratch.file(Self.database)))

        store = try Fixture.store(in: scratch, clock: clock)
        try await store.grants.revoke(dead.id)
        _ = try await store.invites.redeem(spent, as: "a")
        for _ in 0..<5 { _ = await redeems(store, Fixture.forged(burnt)) }
        try await store.close()
        unlink(scratch.file(Self.database))
        try PrivateFile.write(scratch.file(Self.database), copy)

        for _ in 0..<2 {
            store = try Fixture.store(in: scratch, clock: clock)
            #expect(await !accepts(store, deadToken))
            for token in [spent, burnt] { #expect(await !redeems(store, token)) }
            #expect(await accepts(store, live))
            #expect(try await store.verifyAudit().firstInvalidEntry == nil)
            try await store.close()
        }
    }

    @Test func `without its database the store accepts no token, and the log continues`() async throws {
        let clock = TestClock()
        let (live, _, spent) = try await fill(scratch, clock)
        unlink(scratch.file(Self.database))
        let store = try Fixture.store(in: scratch, clock: clock)
        #expect(await !accepts(store, live))
        #expect(await !redeems(store, spent))
        _ = try await store.grant()
        #expect(try await store.verifyAudit().firstInvalidEntry == nil)
    }

    @Test func `a damaged database is set aside and reported`() async throws {
        let clock = TestClock()
        let (live, _, _) = try await fill(scratch, clock)
        let path = scratch.file(Self.database)
        var bytes = try Data(contentsOf: URL(filePath: path))
        bytes.replaceSubrange(0..<4_096, with: Data(repeating: 0x5A, count: 4_096))
        unlink(path)
        try PrivateFile.write(path, bytes)

        let store = try Fixture.store(in: scratch, clock: clock)

        #expect(await store.findings.first?.contains("\(path) was damaged and is kept as \(path).damaged") == true)
        #expect(try Data(contentsOf: URL(filePath: "\(path).damaged")) == bytes)
        #expect(await !accepts(store, live))
        _ = try await store.grant(to: "new")
        #expect(try await store.verifyAudit().firstInvalidEntry == nil)
    }

    @Test(arguments: ["meta", "grants", "outbox"])
    func `a database that lacks a table is set aside`(table: String) async throws {
        let clock = TestClock()
        let (live, _, _) = try await fill(scratch, clock)
        let file = try SQLite(opening: scratch.file(Self.database))
        try file.execute("DROP TABLE \(table)")
        try file.close()

        let store = try Fixture.store(in: scratch, clock: clock)

        #expect(await store.findings.first?.contains("was damaged and is kept as") == true)
        #expect(await !accepts(store, live))
    }

    @Test func `a changed byte anywhere in the database revives no permission`() async throws {
        let clock = TestClock()
        let (live, dead, spent) = try await fill(scratch, clock)
        let path = scratch.file(Self.database)
        let key = scratch.file("access.key")
        let good = try Data(contentsOf: URL(filePath: path))
        let keyData = try Data(contentsOf: URL(filePath: key))
        var random = SeededGenerator(seed: 3)
        var noticed = 0
        let count = Scale.pick(short: 150, soak: 10_000)
        for round in 0..<count {
            let folder = try scratch.makeFolder("\(round)")
            chmod(folder, 0o700)
            var bytes = good
            // Only non-empty areas, because most of the file is empty.
            var index = 0
            repeat { index = Int.random(in: bytes.indices, using: &random) } while bytes[index] == 0
            bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            try PrivateFile.write("\(folder)/\(Self.database)", bytes)
            try PrivateFile.write("\(folder)/access.key", keyData)
            do {
                let store = try AccessStore(in: folder, logger: .quiet, reading: clock.read)
                #expect(await !accepts(store, dead), "byte \(index)")
                #expect(await !redeems(store, spent), "byte \(index)")
                let isAsItWas = await accepts(store, live)
                if await !store.findings.isEmpty { noticed += 1 } else { #expect(isAsItWas, "byte \(index)") }
                try await store.close()
            } catch {
                // Rejected with an `AccessError`.
                #expect(error is AccessError, "byte \(index): \(error)")
                noticed += 1
            }
            try FileManager.default.removeItem(atPath: folder)
        }
        #expect(noticed > count / 2, "\(noticed) of \(count)")
    }

    @Test func `no file contains a secret that was given out`() async throws {
        let folder = try scratch.makeFolder("state")
        chmod(folder, 0o700)
        let store = try AccessStore(in: folder, logger: .quiet)
        var secrets: [Substring] = []
        var ids: [String] = []
        for number in 0..<100 {
            let (_, invite) = try await store.invites.create()
            let (_, grant) = try await store.invites.redeem(invite, as: "\(number)")
            _ = try? await store.grants.authenticate(Fixture.forged(grant))
            secrets += [invite, grant].map { $0.reveal().split(separator: "_")[2] }
            ids.append(invite.id)
        }
        try scratch.write(secrets.joined(separator: "\n"), to: "secrets")
        try scratch.write(ids.joined(separator: "\n"), to: "ids")
        func finds(_ list: String) async throws -> Bool {
            let arguments = ["-r", "-a", "-q", "-F", "-f", scratch.file(list), folder]
            return try await Program("grep", arguments, in: scratch).exitStatus() == .exited(0)
        }

        #expect(try await !finds("secrets"))
        try await store.close()
        #expect(try await !finds("secrets"))
        // The search finds IDs, so it would find secrets too.
        #expect(try await finds("ids"))
    }

    @Test(.needs(.root, .namespaces))
    func `a full disk rejects operations, spends nothing, and recovers`() async throws {
        let folder = try scratch.makeFolder("small")
        try await Program.run("mount", ["-t", "tmpfs", "-o", "size=512k,mode=700", "tmpfs", folder], in: scratch)
        scratch.atEnd { umount2(folder, CInt(MNT_DETACH)) }
        let clock = TestClock()
        var store = try AccessStore(in: folder, logger: .quiet, reading: clock.read)
        let (_, invite) = try await store.invites.create()
        let (live, liveToken) = try await store.grant(to: "live")
        let ballast = "\(folder)/ballast"
        let file = open(ballast, O_WRONLY | O_CREAT, 0o600)
        let block = [UInt8](repeating: 1, count: 512)
        while write(file, block, block.count) > 0 {}
        close(file)

        // Operations that fit into the last allocated page may still succeed; then all fail.
        var refusal: AccessError?
        var spent: Token?
        for number in 0..<200 {
            do {
                spent = try await store.invites.redeem(invite, as: "a").1
                _ = try await store.grant(to: "filler \(number)")
            } catch let error as AccessError {
                refusal = error
                break
            }
        }
        guard case .notSaved = refusal else {
            Issue.record("the disk is full and nothing was refused")
            return
        }
        let before = await store.state
        await #expect(throws: AccessError.self) { try await store.grant(to: "more") }
        #expect(await store.state.grants == before.grants)
        // A revocation takes effect at once, even on a full disk.
        await #expect(throws: AccessError.self) { try await store.grants.revoke(live.id) }
        #expect(await !accepts(store, liveToken))

        unlink(ballast)
        let (_, token) = try await store.invites.redeem(invite, as: "a")
        #expect(spent == nil || spent?.reveal() == token.reveal())
        #expect(await accepts(store, token))
        try await store.close()
        store = try AccessStore(in: folder, logger: .quiet, reading: clock.read)
        #expect(await accepts(store, token))
        #expect(await !accepts(store, liveToken))
        #expect(try await store.verifyAudit().firstInvalidEntry == nil)
        try await store.close()
    }
}
