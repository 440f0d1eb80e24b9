import Model
import TestSupport
import Testing

/// A team on a cluster of three etcd servers, each in a network namespace of its own, as are the hosts.
@Suite(.needs(.root, .namespaces, .etcd, .python), .timeLimit(.minutes(5)), .scratchFolder) struct TeamClusterTests {
    private let scratch = ScratchFolder.current

    /// Runs the body with a team whose second host lists the endpoint `shop`.
    private func startTeam() async throws -> RunningTeam {
        let team = try await RunningTeam(in: scratch, network: try await TeamNetwork(in: scratch))
        _ = try await team.lab2.ask("add", "shop", "127.0.0.1:9", "--kind", "appreveal")
        try await team.waitForEndpoint("shop.lab2", "", at: team.lab1)
        return team
    }

    /// Returns whether `lab1` lists the endpoint of `lab2` as outdated; nil if it does not list it.
    private func isStale(_ team: RunningTeam) async throws -> Bool? {
        try await team.lab1.endpoints().first { $0.id.text == "shop.lab2" }.map { $0.host?.staleSince != nil }
    }

    @Test func `after the leader of etcd is killed, changes of a host reach the others, and no entry is lost`()
        async throws
    {
        let team = try await startTeam()
        let question = ["endpoint", "status", "--write-out", "json"]
        let leader = try team.etcd.leader(in: try await team.etcdctl(question, as: team.lab1, user: "root").joined())

        try await leader.kill()

        _ = try await team.lab2.ask("add", "till", "127.0.0.1:9", "--kind", "appreveal")
        try await team.waitForEndpoint("till.lab2", "", at: team.lab1)
        // The mark that the list is current again follows the endpoint.
        try await team.waitUntil { try await isStale(team) == false }
        let problems = try await team.lab1.teamStatus().etcd.filter { $0.problem != nil }.map(\.url)
        #expect(problems == [leader.endpoint])

        try await team.restartEtcd(leader)

        try await team.waitUntil { try await team.lab1.teamStatus().etcd.allSatisfy { $0.problem == nil } }
    }

    @Test func `an etcd node that lost its data is removed and added again, and counts for the quorum`() async throws {
        let team = try await startTeam()
        let wiped = team.etcd[2]
        try await wiped.kill()
        try wiped.wipe()
        // The others may elect a leader first, and refuse commands meanwhile.
        try await team.waitUntil {
            let list = try? await team.etcdctl(["member", "list"], as: team.lab1, user: "root")
            let id = list?.first { $0.contains(wiped.name) }?.prefix { $0 != "," }
            if let id { _ = try? await team.etcdctl(["member", "remove", String(id)], as: team.lab1, user: "root") }
            return list != nil && id == nil
        }
        let addition = ["member", "add", wiped.name, "--peer-urls=\(wiped.peerURL)"]
        // etcd refuses the addition until all other nodes have been connected for 5 s (`HealthInterval` of its server).
        try await team.waitUntil { (try? await team.etcdctl(addition, as: team.lab1, user: "root")) != nil }
        try await wiped.start(members: team.etcd, joining: true)
        try await wiped.waitUntilReady()
        try await team.waitUntil { try await team.lab1.teamStatus().etcd.allSatisfy { $0.problem == nil } }

        // Without the wiped node, the cluster would have no quorum now.
        try await team.etcd[0].kill()
        _ = try await team.lab2.ask("add", "till", "127.0.0.1:9", "--kind", "appreveal")
        try await team.waitForEndpoint("till.lab2", "", at: team.lab1)
        try await team.waitUntil { try await isStale(team) == false }
    }

    @Test func `without a quorum each host works on with an outdated list, and recovers without a command`()
        async throws
    {
        let team = try await startTeam()
        for server in team.etcd.dropFirst() { try await server.kill() }

        try await team.waitUntil { try await isStale(team) == true }
        _ = try await team.lab2.ask("add", "till", "127.0.0.1:9", "--kind", "appreveal")
        #expect(try await team.lab2.endpoints().contains { $0.id.text == "till" })
        #expect(try await !team.lab1.endpoints().contains { $0.id.text == "till.lab2" })

        try await team.restartEtcd(team.etcd[1])

        try await team.waitForEndpoint("till.lab2", "", at: team.lab1)
        try await team.waitUntil { try await isStale(team) == false }
    }
}
