import Client
import FoundationEssentials
import Model
import Samples
import Testing

@Suite struct TeamClientTests {
    @Test func `the status of a broker without a team has no name`() async throws {
        let body = #"{"schema":1,"hosts":[],"etcd":[],"restartNeeded":false}"#
        try await ScriptedBroker.with(.pieces([ScriptedBroker.json(body)])) { broker, client in
            let status = try await client.team.status()

            #expect(status == TeamStatus())
            #expect(broker.requests.first?.hasPrefix("GET /v1/team HTTP/1.1\r\n") == true)
        }
    }

    @Test func `a host joins with the string in the body`() async throws {
        let body = ScriptedBroker.json(#"{"hosts":[],"etcd":[],"restartNeeded":true,"team":"lab"}"#)
        try await ScriptedBroker.with(.pieces([body])) { broker, client in
            let status = try await client.team.join(TeamJoinSpec(pairing: "PATCHBAY-TEAM:…", host: HostName("lab2")))

            #expect(status.team?.text == "lab" && status.restartNeeded)
            let request = try #require(broker.requests.first)
            #expect(request.hasPrefix("POST /v1/team/join HTTP/1.1\r\n"))
            #expect(request.contains(#""host":"lab2""#))
        }
    }

    @Test func `a host is removed by its name`() async throws {
        try await ScriptedBroker.with(.pieces(["HTTP/1.1 204 No Content\r\n\r\n"])) { broker, client in
            try await client.team.remove("lab2")

            #expect(broker.requests.first?.hasPrefix("DELETE /v1/team/members/lab2 HTTP/1.1\r\n") == true)
        }
    }

    @Test func `the admission has everything that a new member needs`() async throws {
        let admission = TeamAdmission(
            team: SanitizedText("lab"),
            certificate: "a",
            authority: "b",
            authorityHost: "lab1",
            etcd: ["https://10.0.0.5:2379"],
            etcdAuthority: nil,
            members: []
        )
        let answer = ScriptedBroker.json(try SampleDocuments.json(admission), status: "201 Created")
        try await ScriptedBroker.with(.pieces([answer])) { broker, client in
            let host: HostName = "lab2"
            let found = try await client.team.admit(TeamMemberSpec(invite: "pbi_x", host: host, request: "c"))

            #expect(found.etcd == admission.etcd && found.authorityHost == admission.authorityHost)
            #expect(broker.requests.first?.hasPrefix("POST /v1/team/members HTTP/1.1\r\n") == true)
        }
    }

    @Test func `the lease of another host's endpoint that is not listed is asked of the broker`() async throws {
        let shop = Endpoint.sample()
        let refusal = try SampleDocuments.json(Problem(.unavailable, "lab2 is unreachable"))
        try await ScriptedBroker.with(
            .pieces([ScriptedBroker.json(#"{"schema":1,"leases":[]}"#)]),
            .pieces([ScriptedBroker.json(refusal, status: "503 Unavailable")])
        ) { broker, client in
            let own = try await client.leases.lease(of: shop)
            #expect(own == nil && broker.requests.isEmpty)
            let remote = shop.on("lab2")
            #expect(try await client.leases.lease(of: remote) == nil)
            #expect(broker.requests.first?.hasPrefix("GET /v1/leases?endpoint=shop.lab2 HTTP/1.1\r\n") == true)
            await #expect(throws: ClientError.self) { _ = try await client.leases.lease(of: remote) }
        }
    }
}
