import FoundationEssentials
import Glibc
import Model
import TestSupport
import Testing

/// The entries of the audit log about the team.
@Suite(.needs(.etcd), .scratchFolder) struct TeamAuditTests {
    private let scratch = ScratchFolder.current

    private struct Line: Decodable {
        struct Event: Decodable {
            let action: String
            let who: AuditActor
            let invite: String?
            let subject: String?
            let detail: String?
        }

        let event: Event
    }

    private func events(_ broker: RunningBroker) async throws -> [Line.Event] {
        try await broker.ask("audit", "--json").map {
            try JSONCoding.decoder().decode(Line.self, from: Data($0.utf8)).event
        }
    }

    private func isOwner(_ actor: AuditActor) -> Bool {
        if case .process(geteuid(), _, _) = actor { true } else { false }
    }

    @Test func `the audit logs name each change of the team, its author, the host and its invite`() async throws {
        let team = try await RunningTeam(in: scratch)
        var authority = try await events(team.lab1)
        #expect(
            authority.map(\.action) == [
                "team-created", "certificate-issued", "team-created", "host-invited", "host-admitted",
            ]
        )
        #expect(authority.map(\.subject) == ["lab", "127.0.0.1", "lab", nil, "lab2"])
        #expect(authority[0].detail == "its registry is not ready" && authority[2].detail == nil)
        #expect(authority[3].invite != nil && authority[4].invite == authority[3].invite)
        #expect(authority[4].detail?.hasPrefix("with the key ") == true)
        #expect(authority[..<4].allSatisfy { isOwner($0.who) } && authority[4].who == .anonymous)
        let joined = try #require(try await events(team.lab2).last)
        #expect(joined.action == "team-joined" && joined.subject == "lab" && isOwner(joined.who))
        #expect(joined.detail == "as the host lab2")

        let pairing = try #require(
            try await team.lab1.ask("team", "invite").first { $0.hasPrefix(TeamPairingString.prefix) }
        )
        _ = try await team.lab2.ask("team", "leave")
        _ = try await team.lab1.ask("team", "remove", "lab2")
        // The second request uses the same invite.
        for status in [ExitStatus.exited(0), .exited(77)] {
            let join = try await team.lab2.start(["team", "join", "-", "--host", "lab2"], input: .pipe)
            try join.write("\(pairing)\n")
            join.closeInput()
            #expect(try await join.exitStatus() == status, "\(join.log)")
        }

        #expect(try await events(team.lab2).map(\.action) == ["team-joined", "team-left", "team-joined"])
        authority = Array(try await events(team.lab1).suffix(4))
        #expect(authority.map(\.action) == ["host-invited", "host-removed", "host-admitted", "refused"])
        #expect(authority[1].subject == "lab2" && authority[2].invite == authority[0].invite)
        #expect(authority[3].detail == "an invalid invite for a host" && authority[3].who == .anonymous)
        #expect(try await team.lab1.ask("audit", "--verify").joined().contains("valid"))
    }
}
