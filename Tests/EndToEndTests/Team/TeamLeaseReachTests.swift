import Model
import TestSupport
import Testing

/// Leases that one host grants to a client of another host.
@Suite(.needs(.etcd, .python), .timeLimit(.minutes(5)), .scratchFolder) struct TeamLeaseReachTests {
    private let scratch = ScratchFolder.current

    @Test func `a lease of another host's endpoint is shown at both hosts, and refuses that host's clients to its end`()
        async throws
    {
        let app = try await SampleApp(in: scratch)
        let team = try await RunningTeam(in: scratch)
        let (lab1, lab2) = (team.lab1, team.lab2)
        _ = try await lab2.ask("add", "shop", "127.0.0.1:\(app.port)", "--kind", "appreveal")
        try await team.waitForEndpoint("shop.lab2", at: lab1)

        _ = try await lab1.ask("lease", "shop.lab2", "--note", "by hand")

        let here = try #require(try await lab2.leases().first)
        #expect(here.endpoint.text == "shop" && !here.isOwn && here.holder.text.hasSuffix(" on lab1"), "\(here)")
        let there: Lease = try await eventually("lab1 shows the lease") { try await lab1.leases().first }
        #expect(there.id == "\(here.id).lab2" && there.endpoint.text == "shop.lab2" && there.isOwn, "\(there)")
        #expect(there.note?.text == "by hand")

        for words in [
            ["call", "shop", "tap_element", "element_id=buy"], ["forward", "--detach", "-e", "shop", "tcp:0"],
        ] {
            let refused = try await lab2.start(words)
            #expect(try await refused.exitStatus() != .exited(0), "\(words)")
            #expect(refused.log.contains("is leased to \"\(here.holder)\""), "\(words): \(refused.log)")
        }
        _ = try await lab2.ask("call", "shop", "get_screen")
        #expect(!app.program.output.contains("call: tap_element"))
        _ = try await lab1.ask("call", "shop.lab2", "tap_element", "element_id=buy")
        let port = try await lab1.forward("tcp:0", "--endpoint", "shop.lab2")
        #expect(try await lab1.fetch("/health", port: port).contains("ok"))

        _ = try await lab1.ask("unlease", "shop.lab2")

        #expect(try await lab2.leases().isEmpty)
        try await team.waitUntil { try await lab1.leases().isEmpty }
        _ = try await lab2.ask("call", "shop", "tap_element", "element_id=buy")
        let own = try await lab2.forward("tcp:0", "--endpoint", "shop")
        #expect(try await lab2.fetch("/health", port: own).contains("ok"))
    }

    @Test func `a claim that a host writes by hand gives its clients nothing`() async throws {
        let app = try await SampleApp(in: scratch)
        let team = try await RunningTeam(in: scratch)
        let (lab1, lab2) = (team.lab1, team.lab2)
        _ = try await lab1.ask("add", "shop", "127.0.0.1:\(app.port)", "--kind", "appreveal")
        try await team.waitForEndpoint("shop.lab1", at: lab2)
        _ = try await lab1.ask("lease", "shop")
        let target = "endpoint-shop.lab1"
        let holder = try #require(try await lab1.leases().first).holder.text
        try await team.waitUntil { try await !team.etcdctl(["get", "/patchbay/v1/claim/\(target)"], as: lab2).isEmpty }

        // A claim by lab1 that names the client of lab2 as its holder, and one by lab2 itself.
        for host in ["lab1", "lab2"] {
            try await team.forgeClaim(
                on: target,
                as: lab2,
                host: host,
                endpoint: "shop.lab1",
                holderKey: host == "lab1" ? "host:lab2/uid:0" : "uid:0"
            )
            // A host reads the registry in order, so lab1 has read the claim when it lists the next entry.
            _ = try await lab2.ask("add", "after-\(host)", "127.0.0.1:9")
            try await team.waitUntil { try await lab1.ask("list").contains { $0.contains("after-\(host).lab2") } }
            let refusal = try await lab2.refused("call", "shop.lab1", "tap_element", "element_id=buy")
            #expect(refusal.contains("shop.lab1 is leased to \"\(holder)\""), "\(refusal)")
            #expect(refusal.contains("meanwhile; `patchbay lease shop.lab1 --wait 5m`"), "\(refusal)")
        }

        #expect(!app.program.output.contains("call: tap_element"))
        #expect(try await lab1.leases().first?.isOwn == true)
        _ = try await lab1.ask("call", "shop", "tap_element", "element_id=buy")
    }
}
