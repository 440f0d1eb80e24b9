import AccessControl
import FoundationEssentials
import Model
import Samples
import Synchronization
import TestSupport
import Testing

@testable import Team

@Suite(.scratchFolder) struct TeamInvitesTests {
    private let scratch = ScratchFolder.current

    /// A wall clock that tests set.
    private final class WallClock: Sendable {
        private let time = Mutex(Date(timeIntervalSince1970: 1_700_000_000))

        var now: Date { time.withLock { $0 } }
        func advance(by seconds: TimeInterval) { time.withLock { $0 += seconds } }
    }

    private func withInvites(_ body: (_ start: () -> TeamInvites, WallClock) async throws -> Void) async throws {
        let folder = TeamFolder(in: scratch.file("."))
        try folder.prepare()
        let clock = WallClock()
        let start = {
            TeamInvites(
                in: folder,
                now: { clock.now },
                logger: .quiet
            )
        }
        try await body(start, clock)
    }

    /// A token with the ID of another one and another secret.
    private static func wrong(_ token: Token) throws -> Token {
        var source = SystemRandomNumberGenerator()
        return try Token(TokenFormat.text(.invite, id: token.id, secret: Base62.random(count: 22, from: &source)))
    }

    @Test func `an invite is spent once, also after a restart of the broker`() async throws {
        try await withInvites { start, _ in
            let token = try await start().create().token
            let invites = start()

            #expect(try await invites.spend(token, by: "lab2") != nil)
            #expect(try await invites.spend(token, by: "lab2") == nil)
            #expect(try await start().spend(token, by: "lab2") == nil)
        }
    }

    @Test func `an invite ends after 10 minutes, and when the clock is set back`() async throws {
        for seconds in [600, -61] {
            try await withInvites { start, clock in
                let invites = start()
                let (token, expiresAt) = try await invites.create()
                #expect(expiresAt == clock.now.addingTimeInterval(600))
                clock.advance(by: TimeInterval(seconds))

                #expect(try await invites.spend(token, by: "lab2") == nil)
            }
        }
    }

    @Test func `the fifth wrong secret ends an invite, also with restarts between them`() async throws {
        try await withInvites { start, _ in
            let token = try await start().create().token
            for _ in 1..<TeamInvites.wrongLimit {
                #expect(try await start().spend(Self.wrong(token), by: "lab2") == nil)
            }
            let record = try #require(try await start().spend(token, by: "lab2"))
            let invites = start()
            try await invites.restore("lab2", in: record)

            #expect(try await invites.spend(Self.wrong(token), by: "lab2") == nil)
            #expect(try await invites.spend(token, by: "lab2") == nil)
        }
    }

    @Test func `only one of two attempts at the same time spends an invite`() async throws {
        try await withInvites { start, _ in
            let invites = start()
            let token = try await invites.create().token
            async let first = invites.spend(token, by: "lab2")
            async let second = invites.spend(token, by: "lab2")

            #expect(try await [first, second].compactMap { $0 }.count == 1)
        }
    }

    @Test func `the file has no secret`() async throws {
        let folder = TeamFolder(in: scratch.file("."))
        try folder.prepare()
        let invites = TeamInvites(in: folder, logger: .quiet)
        let token = try await invites.create().token
        let text = try String(contentsOfFile: "\(folder.path)/invites.json", encoding: .utf8)

        #expect(text.contains(token.id))
        let secret = token.reveal().split(separator: "_")[2]
        #expect(!text.contains(secret))
    }

    @Test func `an invite for several hosts admits each once, and only those that it names`() async throws {
        try await withInvites { start, _ in
            let spec = TeamInviteSpec(hosts: 2, seconds: 86_400, names: ["lab*", "mac-1"])
            let token = try await start().create(spec).token
            let invites = start()

            #expect(try await invites.spend(token, by: "other") == nil)
            #expect(try await invites.spend(token, by: "lab2")?.admitted == ["lab2"])
            #expect(try await start().spend(token, by: "lab2") == nil)
            #expect(try await invites.open.first?.admitted == ["lab2"])
            #expect(try await invites.spend(token, by: "mac-1")?.admitted == ["lab2", "mac-1"])
            #expect(try await invites.spend(token, by: "lab3") == nil)
            #expect(try await invites.open.isEmpty)
        }
    }

    @Test func `a host that was not admitted gets its place back, and no other one`() async throws {
        try await withInvites { start, _ in
            let invites = start()
            let token = try await invites.create(TeamInviteSpec(hosts: 2)).token
            let first = try #require(try await invites.spend(token, by: "lab2"))
            #expect(try await invites.spend(token, by: "lab3") != nil)
            try await invites.restore("lab2", in: first)

            #expect(try await invites.spend(token, by: "lab3") == nil)
            #expect(try await invites.spend(token, by: "lab4") != nil)
            #expect(try await invites.spend(token, by: "lab5") == nil)
        }
    }

    @Test func `a revoked invite admits no further host, also not one that gets its place back`() async throws {
        try await withInvites { start, _ in
            let invites = start()
            let token = try await invites.create(TeamInviteSpec(hosts: 3)).token
            let record = try #require(try await invites.spend(token, by: "lab2"))

            #expect(try await invites.revoke(token.id))
            try await invites.restore("lab2", in: record)
            #expect(try await start().spend(token, by: "lab3") == nil)
            #expect(try await !invites.revoke(token.id))
        }
    }

    @Test func `an invite that an earlier version saved is for one host`() async throws {
        let folder = TeamFolder(in: scratch.file("."))
        try folder.prepare()
        let token = try await TeamInvites(in: folder, logger: .quiet).create().token
        let path = "\(folder.path)/invites.json"
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let old = try text.replacing(Regex(#","(hosts" ?: ?1|names" ?: ?\[\]|admitted" ?: ?\[\])"#), with: "")
        try Data(old.utf8).write(to: URL(filePath: path))
        let invites = TeamInvites(in: folder, logger: .quiet)

        #expect(try await invites.spend(token, by: "lab2") != nil)
        #expect(try await invites.spend(token, by: "lab3") == nil)
    }

    @Test(arguments: [
        TeamInviteSpec(hosts: 0), TeamInviteSpec(hosts: 1_001), TeamInviteSpec(seconds: 86_401),
        TeamInviteSpec(names: ["lab 2"]), TeamInviteSpec(names: ["[a-z]"]), TeamInviteSpec(names: [""]),
    ])
    func `an invite has bounds`(spec: TeamInviteSpec) async throws {
        let lab1 = try await TeamFixture(in: scratch).createTeam()

        await #expect(throws: Problem.self) { try await lab1.invite(spec) }
        #expect(try await lab1.invites().isEmpty)
    }
}
