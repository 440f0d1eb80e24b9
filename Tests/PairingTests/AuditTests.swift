import FoundationEssentials
import Glibc
import Model
import Rig
import Testing

@testable import Pairing

@Suite struct AuditTests {
    private func fill(_ scratch: ScratchFolder) async throws -> (head: AuditLine.Head, text: Data) {
        let store = try Bench.store(in: scratch)
        for number in 0..<4 { _ = try await store.grant(to: "\(number)") }
        try await store.revoke(.all, by: Bench.owner, from: Bench.socket)
        try await store.close()
        let text = try Data(contentsOf: URL(filePath: scratch.file("audit.jsonl")))
        let last = try #require(text.split(separator: UInt8(ascii: "\n")).last)
        return (AuditLine.Head(number: 9, hash: AuditLine.hash(of: last)), text)
    }

    private func verify(_ text: Data, _ head: AuditLine.Head, in scratch: ScratchFolder) throws -> AuditReport {
        let path = scratch.file("copy.jsonl")
        try text.write(to: URL(filePath: path))
        return try AuditFile.verify(path, head: head)
    }

    @Test func `whichever byte of the log flips, the line is named, or the one after it`() async throws {
        try await withScratchFolder { scratch in
            let (head, text) = try await fill(scratch)
            #expect(try verify(text, head, in: scratch) == AuditReport(lines: 9, broken: nil))
            var line = 1
            for index in text.indices {
                var flipped = text
                flipped[index] ^= 1 << UInt8(index % 7)
                if index.isMultiple(of: 7) {
                    let broken = try verify(flipped, head, in: scratch).broken?.line
                    #expect(broken == line || broken == line + 1, "byte \(index) of line \(line): \(broken ?? 0)")
                }
                if text[index] == UInt8(ascii: "\n") { line += 1 }
            }
        }
    }

    @Test func `a line that was taken out, put in, swapped or cut off at the end is noticed`() async throws {
        try await withScratchFolder { scratch in
            let (head, text) = try await fill(scratch)
            let lines = text.split(separator: UInt8(ascii: "\n"))
            func joined(_ lines: [Data]) -> Data { Data(lines.joined(separator: [UInt8(ascii: "\n")])) + [10] }
            var swapped = lines
            swapped.swapAt(3, 4)
            let forgeries: [(lines: [Data], broken: Int)] = [
                (Array(lines[..<4] + lines[5...]), 5), (Array(lines[...4] + lines[4...]), 6), (swapped, 4),
                (Array(lines.dropLast()), 9), ([], 1),
            ]
            for forgery in forgeries {
                #expect(try verify(joined(forgery.lines), head, in: scratch).broken?.line == forgery.broken)
            }
        }
    }

    @Test func `who did what from where is in it, and what the caller chose is not`() async throws {
        try await withScratchFolder { scratch in
            let store = try Bench.store(in: scratch)
            let (grant, _) = try await store.grant(to: "evil\u{1B}[2J name")
            try await store.revoke(.one(grant.id), by: Bench.owner, from: Bench.socket)
            let events = try Bench.audit(in: scratch).map(\.event)
            #expect(events.map(\.action) == [.invited, .redeemed, .revoked])
            #expect(events[0].who == Bench.owner && events[0].from == Bench.socket)
            #expect(events[1].from == Bench.loopback && events[1].grant == grant.id)
            #expect(events[2].ended == [grant.id])
            #expect(try !Data(contentsOf: URL(filePath: scratch.file("audit.jsonl"))).contains(0x1B))
        }
    }

    @Test func `a log that was shortened is noticed at start, and again by a check`() async throws {
        try await withScratchFolder { scratch in
            let (_, text) = try await fill(scratch)
            let lines = text.split(separator: UInt8(ascii: "\n"))
            let short = Data(lines.prefix(3).joined(separator: [UInt8(ascii: "\n")])) + [10]
            unlink(scratch.file("audit.jsonl"))
            try PrivateFile.make(scratch.file("audit.jsonl"), content: short)

            let store = try Bench.store(in: scratch)
            #expect(await store.findings.contains { $0.contains("shortened from outside after line 3 of 9") })
            _ = try await store.grant()
            #expect(try await store.verifyAudit().broken?.line == 4)
        }
    }
}
