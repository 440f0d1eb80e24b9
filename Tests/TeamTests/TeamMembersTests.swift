import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import Team

@Suite(.timeLimit(.minutes(1)), .scratchFolder) struct TeamMembersTests {
    private let scratch = ScratchFolder.current

    private func load(_ scratch: ScratchFolder) async throws -> TeamMembers {
        try await TeamMembers(in: scratch.path, logger: Values.logger)
    }

    @Test func `a host is accepted only with the key of its member`() async throws {
        let members = try await load(scratch)
        let (lab2, other) = (try Values.member("lab2"), try Values.member("lab2", key: 2))
        #expect(!members.accepts(lab2.name, key: lab2.key))

        await members.replace(with: [lab2])

        #expect(members.accepts(lab2.name, key: lab2.key))
        #expect(!members.accepts(lab2.name, key: other.key))
        #expect(!members.accepts(try Values.host("lab3"), key: lab2.key))
    }

    @Test func `the members survive a restart without the registry`() async throws {
        let list = [try Values.member("lab1"), try Values.member("lab2")]
        await (try await load(scratch)).replace(with: list)

        #expect(try await load(scratch).all == list)
    }

    @Test func `a removed member stays removed after a restart`() async throws {
        let members = try await load(scratch)
        let lab2 = try Values.member("lab2")
        await members.replace(with: [try Values.member("lab1"), lab2])
        await members.replace(with: [try Values.member("lab1")])

        let restarted = try await load(scratch)
        #expect(!restarted.accepts(lab2.name, key: lab2.key))
    }

    @Test func `a removed key is never accepted again, also if its entry returns, and after a restart`() async throws {
        let members = try await load(scratch)
        let (lab1, lab2) = (try Values.member("lab1"), try Values.member("lab2"))
        await members.replace(with: [lab1, lab2])
        await members.replace(with: [lab1])

        await members.replace(with: [lab1, lab2])
        #expect(members.all == [lab1])

        let restarted = try await load(scratch)
        await restarted.replace(with: [lab1, lab2])
        #expect(!restarted.accepts(lab2.name, key: lab2.key))
    }

    @Test func `a removed host is accepted again with a new key, and a replaced key is refused`() async throws {
        let members = try await load(scratch)
        let (lab1, lab2) = (try Values.member("lab1"), try Values.member("lab2"))
        let (second, third) = (try Values.member("lab2", key: 2), try Values.member("lab2", key: 3))
        await members.replace(with: [lab1, lab2])
        await members.replace(with: [lab1])
        await members.replace(with: [lab1, second])
        #expect(members.all == [lab1, second])

        await members.replace(with: [lab1, third])
        await members.replace(with: [lab1, second])

        #expect(!members.accepts(second.name, key: second.key))
    }

    @Test func `members are accepted again after the registry lost all of them`() async throws {
        let members = try await load(scratch)
        let list = [try Values.member("lab1"), try Values.member("lab2")]
        await members.replace(with: list)
        await members.replace(with: [])
        #expect(members.all.isEmpty)

        await members.replace(with: list)

        #expect(members.all == list)
    }

    @Test func `a join removes no member that its list lacks, and accepts no key that was removed`() async throws {
        let members = try await load(scratch)
        let (lab1, lab2, lab3) = (try Values.member("lab1"), try Values.member("lab2"), try Values.member("lab3"))
        await members.replace(with: [lab1, lab2, lab3])
        await members.replace(with: [lab1, lab2])

        await members.join([lab1, lab3], isSameTeam: true)
        #expect(members.all == [lab1])

        let restarted = try await load(scratch)
        await restarted.replace(with: [lab1, lab2, lab3])
        #expect(restarted.all == [lab1, lab2])
    }

    @Test func `the join of another team forgets the removed keys`() async throws {
        let members = try await load(scratch)
        let (lab1, lab2, lab3) = (try Values.member("lab1"), try Values.member("lab2"), try Values.member("lab3"))
        await members.replace(with: [lab1, lab2, lab3])
        await members.replace(with: [lab1, lab2])

        await members.join([lab3], isSameTeam: false)

        let restarted = try await load(scratch)
        #expect(restarted.all == [lab3] && restarted.removedKeys.isEmpty)
    }

    @Test func `subscribers learn each removal, also that of a key`() async throws {
        let members = try await load(scratch)
        let (lab2, lab3) = (try Values.member("lab2"), try Values.member("lab3"))
        await members.replace(with: [lab2, lab3])
        var removals = members.removals().makeAsyncIterator()

        await members.replace(with: [try Values.member("lab2", key: 2), lab3])
        #expect(await removals.next() == lab2)
        await members.replace(with: [try Values.member("lab2", key: 2)])
        #expect(await removals.next() == lab3)
    }

    @Test func `an equal list is not written again`() async throws {
        let members = try await load(scratch)
        await members.replace(with: [try Values.member("lab2")])
        try FileManager.default.removeItem(atPath: scratch.file("members.json"))

        await members.replace(with: [try Values.member("lab2")])

        #expect(!FileManager.default.fileExists(atPath: scratch.file("members.json")))
    }

    @Test func `the membership survives a restart`() async throws {
        #expect(try await TeamMembership.load(from: scratch.path, logger: Values.logger) == nil)
        let membership = TeamMembership(
            team: Values.team,
            host: try Values.host("lab2"),
            etcd: ["https://10.0.0.1:2379"],
            addresses: ["10.0.0.2:7284"],
            authority: try Values.host("lab1"),
            authorityAddresses: ["10.0.0.1:7284"]
        )

        try await membership.save(in: scratch.path, logger: Values.logger)

        #expect(try await TeamMembership.load(from: scratch.path, logger: Values.logger) == membership)
        #expect(!membership.isAuthority)
    }
}
