import FoundationEssentials
import Glibc
import Model
import Samples
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import AccessControl

@Suite(.scratchFolder) struct AuditTests {
    private let scratch = ScratchFolder.current

    private func fill(_ scratch: ScratchFolder) async throws -> (head: AuditEntry.Head, text: Data) {
        let store = try Fixture.store(in: scratch)
        for number in 0..<4 { _ = try await store.grant(to: "\(number)") }
        try await store.grants.revoke(.all)
        try await store.close()
        let text = try Data(contentsOf: URL(filePath: scratch.file("audit.jsonl")))
        let last = try #require(text.split(separator: UInt8(ascii: "\n")).last)
        return (AuditEntry.Head(number: 9, hash: AuditEntry.hash(of: last)), text)
    }

    private func verify(_ text: Data, _ head: AuditEntry.Head, in scratch: ScratchFolder) throws -> AuditVerification {
        try text.write(to: URL(filePath: "\(scratch.path)/audit.jsonl"))
        return try report(scratch, head)
    }

    /// Verifies all segments of the log in a folder.
    private func report(_ scratch: ScratchFolder, _ head: AuditEntry.Head) throws -> AuditVerification {
        let segments = try AuditSegments(in: scratch.path)
        var chain = AuditVerifier(endingAt: head)
        var lines = AuditLineReader(segments, from: segments.full.first)
        while let line = try lines.next() { chain.append(line) }
        return chain.report
    }

    @Test func `a changed byte anywhere in the log is reported at its line or the next one`() async throws {
        let (head, text) = try await fill(scratch)
        #expect(try verify(text, head, in: scratch) == AuditVerification(entries: 9))
        var line = 1
        for index in text.indices {
            var flipped = text
            flipped[index] ^= 1 << UInt8(index % 7)
            if index.isMultiple(of: 7) {
                let broken = try verify(flipped, head, in: scratch).firstInvalidEntry
                #expect(broken == line || broken == line + 1, "byte \(index) of line \(line): \(broken ?? 0)")
            }
            if text[index] == UInt8(ascii: "\n") { line += 1 }
        }
    }

    @Test func `removed, inserted, swapped and truncated lines are detected`() async throws {
        let (head, text) = try await fill(scratch)
        let lines = text.split(separator: UInt8(ascii: "\n"))
        func joined(_ lines: [Data]) -> Data { Data(lines.joined(separator: [UInt8(ascii: "\n")])) + [10] }
        var swapped = lines
        swapped.swapAt(3, 4)
        let forgeries: [(lines: [Data], invalid: Int)] = [
            (Array(lines[..<4] + lines[5...]), 5), (Array(lines[...4] + lines[4...]), 6), (swapped, 4),
            (Array(lines.dropLast()), 9), ([], 1),
        ]
        for forgery in forgeries {
            #expect(try verify(joined(forgery.lines), head, in: scratch).firstInvalidEntry == forgery.invalid)
        }
    }

    @Test func `an entry has actor, action and source, and no text that the caller chose`() async throws {
        let store = try Fixture.store(in: scratch)
        let (grant, _) = try await store.grant(to: "evil\u{1B}[2J name")
        try await store.grants.revoke(grant.id)
        let events = try Fixture.audit(in: scratch).map(\.event)
        #expect(events.map(\.action) == [.invited, .redeemed, .revoked])
        #expect(events[0].who == Fixture.owner && events[0].from == Fixture.socket)
        #expect(events[1].from == Fixture.loopback && events[1].grant == grant.id)
        #expect(events[2].ended == [grant.id])
        #expect(try !Data(contentsOf: URL(filePath: scratch.file("audit.jsonl"))).contains(0x1B))
    }

    @Test func `a change of the team has an entry with its author, the host and the invite`() async throws {
        let store = try Fixture.store(in: scratch)
        let source = RequestSource.remote(address: "10.0.0.8")
        let principal = Principal(.anonymous, source: source, actor: .anonymous)
        try await store.auditTeam(.hostAdmitted, of: SanitizedText("lab2"), invite: "abc", "with a key", by: principal)

        // The entry is on disk before the call returns.
        let event = try #require(try Fixture.audit(in: scratch).last?.event)
        #expect(event.action.rawValue == "host-admitted" && event.subject?.text == "lab2")
        #expect(event.invite == "abc" && event.detail == "with a key")
        #expect(event.who == .anonymous && event.from == source)
    }

    @Test func `a shortened log is detected at startup and by a verification`() async throws {
        let (_, text) = try await fill(scratch)
        let lines = text.split(separator: UInt8(ascii: "\n"))
        let short = Data(lines.prefix(3).joined(separator: [UInt8(ascii: "\n")])) + [10]
        unlink(scratch.file("audit.jsonl"))
        try PrivateFile.write(scratch.file("audit.jsonl"), short)

        let store = try Fixture.store(in: scratch)
        #expect(await store.findings.contains { $0.contains("shortened from outside after line 3 of 9") })
        _ = try await store.grant()
        #expect(try await store.verifyAudit().firstInvalidEntry == 4)
    }

    @Test func `a full file becomes a segment, the chain continues in the next file, and no line is deleted`()
        async throws
    {
        var store = try Fixture.store(in: scratch, auditSegment: 1_500)
        for number in 0..<40 {
            _ = try await store.grant(to: "\(number)")
            if number.isMultiple(of: 9) {
                try await store.close()
                store = try Fixture.store(in: scratch, auditSegment: 1_500)
                #expect(await store.findings.isEmpty)
            }
        }
        #expect(try await store.verifyAudit() == AuditVerification(entries: 80))
        let segments = try AuditSegments(in: scratch.path)
        #expect(segments.full.count > 5 && segments.full == Array(1...segments.full.count))

        func numbers(after number: Int?, _ limit: Int) async throws -> [Int] {
            try await store.auditLines(after: number, limit: limit).map {
                try JSONCoding.decoder().decode(AuditEntry.self, from: $0).number
            }
        }
        #expect(try await numbers(after: nil, 1) == [80])
        #expect(try await numbers(after: nil, 33) == Array(48...80))
        #expect(try await numbers(after: nil, 1_000) == Array(1...80))
        for number in [0, 1, 7, 40, 78, 79] {
            #expect(try await numbers(after: number, 5) == Array(number + 1...min(80, number + 5)))
        }
        #expect(try await numbers(after: 80, 5) == [])
        #expect(try await numbers(after: 0, 1_000) == Array(1...80))

        // A missing segment, and a changed byte in an old segment.
        let (first, aside) = (segments.path(of: 3), scratch.file("aside"))
        let missing = try #require(
            try AuditSegments.lines(after: 0, limit: 80, in: scratch.path).firstIndex {
                try Data(contentsOf: URL(filePath: first)).starts(with: $0)
            }
        )
        #expect(rename(first, aside) == 0)
        #expect(try await store.verifyAudit().firstInvalidEntry == missing + 1)
        var text = try Data(contentsOf: URL(filePath: aside))
        text[20] ^= 1
        try text.write(to: URL(filePath: aside))
        #expect(rename(aside, first) == 0)
        #expect(try await [missing + 1, missing + 2].contains(store.verifyAudit().firstInvalidEntry))
    }

    @Test func `a retention deletes the oldest segments, and the log stays verifiable`() async throws {
        let store = try Fixture.store(in: scratch, auditSegment: 1_500)
        for number in 0..<40 { _ = try await store.grant(to: "\(number)") }
        let before = try AuditSegments(in: scratch.path).full

        await store.setAuditRetention(AuditRetention(maxAge: 864_000_000, maxBytes: 6_000))

        let after = try AuditSegments(in: scratch.path).full
        #expect(after.count < before.count && !after.isEmpty)
        #expect(try await store.verifyAudit().firstInvalidEntry == nil)
        func numbers(after number: Int) async throws -> [Int] {
            try await store.auditLines(after: number, limit: 5).map {
                try JSONCoding.decoder().decode(AuditEntry.self, from: $0).number
            }
        }
        let oldest = try #require(try await numbers(after: 0).first)
        #expect(oldest > 1)
        #expect(try await numbers(after: 0) == Array(oldest..<oldest + 5))
        #expect(try await numbers(after: oldest + 2) == Array(oldest + 3..<oldest + 8))
        let entries = try await store.auditLines(after: nil, limit: 1)
        let entry = try JSONCoding.decoder().decode(AuditEntry.self, from: #require(entries.first))
        #expect(entry.event.action == .pruned && entry.event.through == oldest - 1)

        try await store.close()
        let next = try Fixture.store(in: scratch, auditSegment: 1_500)
        #expect(await next.findings.isEmpty)
        // A segment that the retention did not delete.
        unlink(try AuditSegments(in: scratch.path).path(of: #require(after.first)))
        #expect(try await next.verifyAudit().firstInvalidEntry == 1)
    }

    @Test func `a call is recorded with the time of the call, not of the write`() async throws {
        let clock = TestClock()
        let store = try Fixture.store(in: scratch, clock: clock)
        let time = clock.read().wall
        let event = EndpointCallEvent(
            of: EndpointID("shop"),
            subject: SanitizedText("tap"),
            bytes: 1,
            outcome: "answered"
        )
        store.auditCall(event, by: .anonymous, from: Fixture.loopback)
        clock.pass(1_000)
        _ = try await store.grant(to: "x")

        let entries = try await store.auditLines(after: nil, limit: 10).map {
            try JSONCoding.decoder().decode(AuditEntry.self, from: $0)
        }
        let call = try #require(entries.first { $0.event.action == .called })
        #expect(Int64((call.wallTime.timeIntervalSince1970 * 1_000).rounded()) == Int64(time))
    }

    @Test func `the redemption of an invite names the client`() async throws {
        let store = try Fixture.store(in: scratch)
        let (_, invite) = try await store.invites.create()
        let agent = AuditActor.process(uid: 1_000, pid: 42, executable: SanitizedText("/usr/bin/agent"))
        _ = try await store.invites.redeem(
            Fixture.redemption(of: invite, as: "claude"),
            by: agent,
            from: .unix(uid: 1_000)
        )

        let line = try #require(try await store.auditLines(after: nil, limit: 1).first)
        let event = try JSONCoding.decoder().decode(AuditEntry.self, from: line).event
        #expect(event.who == agent)
        #expect(event.subject == SanitizedText("claude"))
    }

    @Test func `pages and verification are correct while lines are appended and segments begin`() async throws {
        let store = try Fixture.store(in: scratch, auditSegment: 700)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { for number in 0..<60 { _ = try await store.grant(to: "\(number)") } }
            group.addTask {
                for _ in 0..<60 {
                    #expect(try await store.verifyAudit().firstInvalidEntry == nil)
                    let lines = try await store.auditLines(after: nil, limit: 7)
                    let numbers = try lines.map { try JSONCoding.decoder().decode(AuditEntry.self, from: $0).number }
                    #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 + 1 == $1 }, "\(numbers)")
                }
            }
            try await group.waitForAll()
        }
    }

    @Test func `old segments are not read at startup, and a page reads only the segments it needs`() async throws {
        let store = try Fixture.store(in: scratch, auditSegment: 1_500)
        for number in 0..<40 { _ = try await store.grant(to: "\(number)") }
        try await store.close()
        // Makes the files unreadable, so that a start that opens them fails.
        let segments = try AuditSegments(in: scratch.path)
        for number in segments.full.dropLast() { try Self.truncateToZero(segments.path(of: number)) }

        let next = try Fixture.store(in: scratch, auditSegment: 1_500)
        #expect(await next.findings.isEmpty)
        #expect(try await next.auditLines(after: nil, limit: 2).count == 2)
        #expect(try await next.verifyAudit().firstInvalidEntry == 1)
    }

    /// Makes every write to the log's open file fail, as on a full disk, until `repair` is called.
    private final class BrokenFile: Sendable {
        private let number: CInt
        private let good: CInt

        init(_ path: String) throws {
            number = try #require(
                (3..<1_024).map(CInt.init).first {
                    (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path
                }
            )
            good = dup(number)
        }

        func fail() {
            let full = open("/dev/full", O_RDWR | O_CLOEXEC)
            dup2(full, number)
            close(full)
        }

        func repair() { dup2(good, number) }

        deinit { close(good) }
    }

    @Test func `a committed change whose log write failed takes effect, and its line is written once`() async throws {
        let broken = Mutex<BrokenFile?>(nil)
        let store = try Fixture.store(in: scratch) { point in
            if point == .afterCommit { broken.withLock { $0?.fail() } }
        }
        let (grant, token) = try await store.grant()
        broken.withLock { $0 = try? BrokenFile(scratch.file("audit.jsonl")) }
        #expect(broken.withLock { $0 != nil })
        let wakes = await store.makeWakes()

        await #expect(throws: AccessError.self) { try await store.grants.revoke(grant.id) }

        await #expect(throws: AccessError.self) { try await store.grants.authenticate(token) }
        for await _ in wakes { break }
        broken.withLock { broken in
            broken?.repair()
            broken = nil
        }
        _ = try await store.grant(to: "another")
        #expect(try await store.verifyAudit().firstInvalidEntry == nil)
        let actions = try Fixture.audit(in: scratch).map(\.event.action)
        #expect(actions == [.invited, .redeemed, .revoked, .invited, .redeemed])
    }

    /// Truncates a file to zero bytes.
    private static func truncateToZero(_ path: String) throws { try #require(truncate(path, 0) == 0) }
}
