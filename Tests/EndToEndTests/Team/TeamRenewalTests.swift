import FoundationEssentials
import Model
import TestSupport
import Testing

/// The renewal of a host's certificate, with real brokers and a real etcd.
@Suite(.needs(.etcd, .openssl), .scratchFolder) struct TeamRenewalTests {
    private let scratch = ScratchFolder.current

    @Test func `a renewed certificate is used without a restart`() async throws {
        let (team, app) = try await RunningTeam.startWithApp(in: scratch)
        defer { withExtendedLifetime(app) {} }
        let before = try await team.lab2.teamStatus()
        let file = "\(team.lab2.state)/team/host.pem"
        let certificate = try String(contentsOfFile: file, encoding: .utf8)
        let invite = try #require(try await team.lab1.ask("team", "invite").first)
        let join = try await team.lab2.start(["team", "join", "-", "--host", "lab2"], input: .pipe)
        try join.write("\(invite)\n")
        join.closeInput()
        #expect(try await join.exitStatus() == .exited(0), "\(join.log)")

        let after = try await team.lab2.teamStatus()

        #expect(!after.restartNeeded && after.key == before.key && after.problem == nil)
        let (old, new) = (try #require(before.certificateExpiresAt), try #require(after.certificateExpiresAt))
        // The times are whole seconds, and both certificates may be of the same one.
        #expect(try String(contentsOfFile: file, encoding: .utf8) != certificate && new >= old)
        #expect(try await team.lab1.teamStatus().hosts.map(\.state) == [.online, .online])
        _ = try await team.lab1.ask("tools", "shop.lab2")
    }

    /// Sends a signing request with a key to lab1, with the certificate of a host. Returns the status and the body.
    private func renew(key: String, as host: RunningBroker?, _ team: RunningTeam) async throws -> (String?, String) {
        let request = try await Program.run("openssl", ["req", "-new", "-key", key, "-subj", "/"], in: scratch)
        let spec = TeamRenewalSpec(request: request.joined(separator: "\n") + "\n")
        let body = scratch.file("renewal.json")
        try JSONCoding.encoder().encode(spec).write(to: URL(filePath: body))
        let identity = host.map { "\($0.state)/team/host.pem" }
        let words =
            ["-sSk", "-w", "\n%{http_code}", "-H", "Content-Type: application/json", "--data-binary", "@\(body)"]
            + (identity.map { ["--cert", $0, "--key", $0] } ?? [])
        let curl = try await Program(
            "curl",
            words + ["https://\(team.addresses[0])/v1/team/members/renewal"],
            in: scratch
        )
        _ = try await curl.exitStatus()
        return (curl.output.last, curl.output.dropLast().joined(separator: "\n"))
    }

    @Test func `the authority renews the key of a member only, over its present certificate`() async throws {
        let team = try await RunningTeam(in: scratch)
        let own = "\(team.lab2.state)/team/host.pem"
        let other = scratch.file("other.pem")
        _ = try await Program.run(
            "openssl",
            ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", other],
            in: scratch
        )

        let renewed = try await renew(key: own, as: team.lab2, team)
        #expect(renewed.0 == "200" && renewed.1.contains("BEGIN CERTIFICATE"), "\(renewed)")
        let wrong = try await renew(key: other, as: team.lab2, team)
        #expect(wrong.0 == "403", "\(wrong)")
        let anonymous = try await renew(key: own, as: nil, team)
        #expect(anonymous.0 == "401", "\(anonymous)")
        #expect(try await team.lab1.ask("audit").joined(separator: "\n").contains("\"lab2\""))
    }
}
