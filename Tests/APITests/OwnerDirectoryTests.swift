import Synchronization
import Testing

@testable import API

@Suite struct OwnerDirectoryTests {
    private final class Database: Sendable {
        let lookups = Mutex(0)

        func read(_ user: UInt32) -> (name: String, groups: [UInt32])? {
            lookups.withLock { $0 += 1 }
            return user == 1_001 ? ("anna", [1_001, 50]) : user == 1_002 ? ("bert", [1_002]) : nil
        }
    }

    @Test func `an owner is root, the broker's user, or a member of the group`() async {
        let database = Database()
        let directory = OwnerDirectory(OwnerPolicy(user: 900, group: 50)) { database.read($0) }

        for owner: UInt32 in [0, 900, 1_001] { #expect(await directory.includes(owner)) }
        for other: UInt32 in [50, 1_000, 1_002, .max] { #expect(!(await directory.includes(other))) }
        #expect(await directory.name(of: 1_001) == "anna")
        #expect(await directory.name(of: 1_000) == "user 1000")
    }

    @Test func `without the group, only root and the broker's user are owners`() async {
        let database = Database()
        let directory = OwnerDirectory(OwnerPolicy(user: 900, group: nil)) { database.read($0) }

        #expect(!(await directory.includes(1_001)))
        #expect(database.lookups.withLock { $0 } == 0)
    }

    @Test func `a user is not looked up for each request`() async {
        let database = Database()
        let directory = OwnerDirectory(OwnerPolicy(user: 900, group: 50)) { database.read($0) }
        for _ in 0..<5 { _ = await directory.includes(1_001) }

        #expect(database.lookups.withLock { $0 } == 1)
    }

    @Test(.timeLimit(.minutes(1))) func `the end of an owner is noticed while a stream is open`() async throws {
        let groups = Mutex<[[UInt32]]>([[50], [50], []])
        let directory = OwnerDirectory(OwnerPolicy(user: 900, group: 50), lifetime: .milliseconds(1)) { _ in
            ("anna", groups.withLock { $0.isEmpty ? [] : $0.removeFirst() })
        }

        try await directory.waitForEnd(of: 1_001)

        #expect(groups.withLock { $0.isEmpty })
    }

    @Test func `the user database of this machine is readable`() async {
        #expect(await OwnerDirectory(OwnerPolicy(user: 900, group: nil)).name(of: 0) == "root")
    }
}
