import Client
import FoundationEssentials
import Model
import Samples
import Testing

@Suite struct RoutePermissionTests {
    private static let grant = Grant.sample(
        "0a1b2c3d",
        createdAt: SampleDocuments.date,
        expiresAt: SampleDocuments.date
    )

    @Test func `a secret travels in the body, and its request names only the endpoint`() async throws {
        try await ScriptedBroker.with(.pieces(["HTTP/1.1 204 No Content\r\n\r\n"])) { broker, client in
            try await client.secrets.set("geheim", of: SampleDocuments.endpoint.id)

            let request = try #require(broker.requests.first)
            #expect(request.hasPrefix("PUT /v1/endpoints/\(SampleDocuments.endpoint.id)/secret HTTP/1.1\r\n"))
            #expect(request.hasSuffix(#"{"secret":"geheim"}"#))
        }
    }

    @Test(arguments: [("", nil), ("Patchbay-Secret: rejected\r\n", .rejected)] as [(String, SecretTrial?)])
    func `the answer of the app to a secret is in a header`(header: String, trial: SecretTrial?) async throws {
        try await ScriptedBroker.with(.pieces(["HTTP/1.1 204 No Content\r\n\(header)\r\n"])) { _, client in
            let found = try await client.secrets.set("geheim", of: SampleDocuments.endpoint.id)
            #expect(found == trial)
        }
    }

    @Test func `the brokers on the network are listed with their claims`() async throws {
        let broker = NearbyBroker(
            id: SanitizedText("ABCDEFGHIJKLMNOP"),
            name: SanitizedText("patchbay-lab"),
            machine: nil,
            addresses: ["10.0.0.3"],
            port: 7_283,
            pair: .open
        )
        let answer = ScriptedBroker.json(try SampleDocuments.json(ListResponse([broker])))
        try await ScriptedBroker.with(.pieces([answer])) { scripted, client in
            let found = try await client.nearbyBrokers()
            #expect(found == [broker])
            #expect(scripted.requests.first?.hasPrefix("GET /v1/brokers HTTP/1.1\r\n") == true)
        }
    }

    @Test func `a redemption returns the grant with its token`() async throws {
        let answer = ScriptedBroker.json(
            try SampleDocuments.json(IssuedGrant(grant: Self.grant, token: "pbg_x")),
            status: "201 Created"
        )
        try await ScriptedBroker.with(.pieces([answer])) { broker, client in
            let spec = RedemptionSpec(token: "pbi_geheim", client: "key", name: SanitizedText("agent"))

            let issued = try await client.redeem(spec)

            #expect(issued.token == "pbg_x")
            #expect(issued.grant == Self.grant)
            #expect(broker.requests.first?.hasPrefix("POST /v1/invites/redeem HTTP/1.1\r\n") == true)
        }
    }

    @Test func `an error of a request with a secret does not contain the secret`() async throws {
        try await ScriptedBroker.with(.pieces(["garbage"])) { _, client in
            let spec = RedemptionSpec(token: "pbi_geheim", client: "key", name: SanitizedText("agent"))
            let error = await #expect(throws: ClientError.self) { try await client.redeem(spec) }
            #expect(error.map { "\($0) \($0.hint ?? "")".contains("geheim") } == false)
        }
    }

    @Test func `the audit log is returned as its original lines`() async throws {
        let answer = ScriptedBroker.json(#"{"schema":1,"lines":["{\"number\":1}","{\"number\":2}"]}"#)
        try await ScriptedBroker.with(.pieces([answer])) { broker, client in
            let audit = try await client.audit.entries(after: 0, limit: 2)

            #expect(audit.lines == [#"{"number":1}"#, #"{"number":2}"#])
            #expect(broker.requests.first?.hasPrefix("GET /v1/audit?after=0&limit=2 HTTP/1.1\r\n") == true)
        }
    }

    @Test func `a request over loopback has the address as its host`() async throws {
        try await ScriptedBroker.onLoopback(.pieces([ScriptedBroker.json(#"{"ended":["a"]}"#)])) { broker, port in
            let client = PatchbayClient(address: .loopback(host: "127.0.0.1", port: port))

            let ended = try await client.revoke("a").ended

            #expect(ended == ["a"])
            #expect(broker.requests.first?.contains("\r\nHost: 127.0.0.1:\(port)\r\n") == true)
        }
    }

    @Test func `a refused loopback connection means that no broker is running`() async throws {
        let client = PatchbayClient(address: .loopback(host: "::1", port: 1))

        await #expect(throws: ClientError.brokerNotRunning(path: "[::1]:1")) { try await client.invites() }
    }

    @Test func `a token is sent with every request, and is in no description`() async throws {
        try await ScriptedBroker.onLoopback(.pieces([ScriptedBroker.json(#"{"ended":["a"]}"#)])) { broker, port in
            let token = AccessToken("pbg_geheim")
            let client = PatchbayClient(address: .loopback(host: "127.0.0.1", port: port)) { token }

            _ = try await client.revoke("a")

            #expect(broker.requests.first?.contains("\r\nAuthorization: Bearer pbg_geheim\r\n") == true)
            var dumped = ""
            dump(client, to: &dumped)
            #expect(!"\(client) \(token) \(String(reflecting: client))\(dumped)".contains("geheim"))
        }
    }
}
