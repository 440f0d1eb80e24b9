import Client
import FoundationEssentials
import Model
import Samples
import Testing

@Suite struct PatchbayClientTests {
    @Test func `a list request escapes its filters, and its response is decoded`() async throws {
        let list = EndpointList(revision: 9, endpoints: [SampleDocuments.endpoint])

        try await ScriptedBroker.with(.pieces([ScriptedBroker.json(try SampleDocuments.json(list))])) {
            broker,
            client in
            let answer = try await client.endpoints(
                state: .online,
                app: "a&b c",
                host: HostName("lab2"),
                since: 8,
                wait: 1
            )

            #expect(answer == list)
            let request = try #require(broker.requests.first)
            #expect(
                request.hasPrefix(
                    "GET /v1/endpoints?since=8&waitSeconds=1&state=online&app=a%26b%20c&host=lab2 HTTP/1.1\r\n"
                )
            )
            #expect(request.contains("Host: localhost\r\n"))
        }
    }

    @Test func `a response may arrive in any number of pieces`() async throws {
        let text = ScriptedBroker.json(try SampleDocuments.json(ListResponse([SampleDocuments.tunnel])))

        try await ScriptedBroker.with(.pieces(text.map(String.init))) { _, client in
            let tunnels = try await client.tunnels.list()

            #expect(tunnels == [SampleDocuments.tunnel])
        }
    }

    @Test func `a chunked response is joined`() async throws {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

        try await ScriptedBroker.with(.pieces([head, "5\r\n{\"del\r\n", "10\r\netedCount\":   3}\r\n0\r\n\r\n"])) {
            _,
            client in
            let count = try await client.tunnels.removeAll()

            #expect(count == 3)
        }
    }

    @Test func `a code for the dashboard and a note of a phone have their routes`() async throws {
        let code = DashboardCode(code: "c", url: "http://127.0.0.1:7282/#code=c", expiresAt: .epoch)
        let answer = ScriptedBroker.json(try SampleDocuments.json(code), status: "201 Created")
        try await ScriptedBroker.with(.pieces([answer])) { broker, client in
            let created = try await client.dashboardCode()
            #expect(created == code)
            #expect(broker.requests.first?.hasPrefix("POST /v1/dashboard/codes HTTP/1.1\r\n") == true)
        }
        try await ScriptedBroker.with(.pieces(["HTTP/1.1 204 No Content\r\n\r\n"])) { broker, client in
            try await client.setNote(DeviceNote(label: SanitizedText("drawer 3")), of: .sample)
            #expect(broker.requests.first?.hasPrefix("PUT /v1/devices/\(UDID.sample)/note HTTP/1.1\r\n") == true)
            #expect(broker.requests.first?.hasSuffix(#"{"label":"drawer 3"}"#) == true)
        }
    }

    @Test func `reverse tunnels are listed, opened and removed by phone and port`() async throws {
        let udid = try #require(UDID(androidSerial: "R58M12ABCDE"))
        let tunnel = ReverseTunnel(udid: udid, phonePort: 8081, localPort: 3000, state: .active)
        let path = "/v1/reverse-tunnels/android-R58M12ABCDE/8081 HTTP/1.1\r\n"
        try await ScriptedBroker.with(.pieces([ScriptedBroker.json(try SampleDocuments.json(tunnel))])) {
            broker,
            client in
            let opened = try await client.tunnels.openReverse(8081, of: udid, to: 3000)
            #expect(opened == tunnel)
            #expect(broker.requests.first?.hasPrefix("PUT \(path)") == true)
            #expect(broker.requests.first?.hasSuffix(#"{"localPort":3000}"#) == true)
        }
        let list = ScriptedBroker.json(try SampleDocuments.json(ListResponse([tunnel])))
        try await ScriptedBroker.with(.pieces([list])) { broker, client in
            let listed = try await client.tunnels.listReverse()
            #expect(listed == [tunnel])
            #expect(broker.requests.first?.hasPrefix("GET /v1/reverse-tunnels HTTP/1.1\r\n") == true)
        }
        try await ScriptedBroker.with(.pieces(["HTTP/1.1 204 No Content\r\n\r\n"])) { broker, client in
            try await client.tunnels.removeReverse(8081, of: udid)
            #expect(broker.requests.first?.hasPrefix("DELETE \(path)") == true)
        }
    }

    @Test func `a body is sent as JSON with its length`() async throws {
        let answer = ScriptedBroker.json(try SampleDocuments.json(SampleDocuments.tunnel), status: "201 Created")

        try await ScriptedBroker.with(.pieces([answer])) { broker, client in
            #expect(try await client.tunnels.open(SampleDocuments.tunnel.spec) == SampleDocuments.tunnel)

            let request = try #require(broker.requests.first)
            #expect(request.hasPrefix("POST /v1/tunnels HTTP/1.1\r\n"))
            #expect(request.contains("Content-Type: application/json\r\n"))
            let body = try SampleDocuments.json(SampleDocuments.tunnel.spec)
            #expect(request.contains("Content-Length: \(body.utf8.count)\r\n"))
            #expect(request.hasSuffix("\r\n\r\n" + body))
        }
    }

    @Test func `a typed ID cannot add path segments`() async throws {
        try await ScriptedBroker.with(.pieces(["HTTP/1.1 204 No Content\r\n\r\n"])) { broker, client in
            try await client.tunnels.remove("../t1?x#y")

            #expect(broker.requests.first?.hasPrefix("DELETE /v1/tunnels/..%2Ft1%3Fx%23y HTTP/1.1") == true)
        }
    }

    @Test func `a problem document is thrown unchanged`() async throws {
        let problem = Problem(.notFound, "no endpoint \"x\"", hint: "patchbay list")
        let answer = ScriptedBroker.json(
            try SampleDocuments.json(problem),
            status: "404 Not Found",
            type: "application/problem+json"
        )

        try await ScriptedBroker.with(.pieces([answer])) { _, client in
            let id: EndpointID = "x"

            let error = await #expect(throws: ClientError.self) { try await client.endpoint(id) }

            #expect(error == .refused(problem))
            #expect(error?.description == "no endpoint \"x\"")
            #expect(error?.hint == "patchbay list")
        }
    }

    @Test(arguments: [
        "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nboom",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nnot json!",
        "SSH-2.0-OpenSSH_9.2\r\n",
    ])
    func `an invalid response is reported as such`(answer: String) async throws {
        try await ScriptedBroker.with(.pieces([answer])) { _, client in
            let error = await #expect(throws: ClientError.self) { try await client.status() }

            guard case .invalidResponse(let what, _) = error else {
                Issue.record("not understood was expected, not \(String(describing: error))")
                return
            }
            #expect(what == "the answer to GET /v1/status")
        }
    }

    @Test(arguments: ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\":"])
    func `a connection that ends early is reported as lost`(answer: String) async throws {
        try await ScriptedBroker.with(.pieces([answer])) { _, client in
            await #expect(throws: ClientError.connectionLost(what: "GET /v1/status")) { try await client.status() }
        }
    }

    @Test func `a silent broker times out`() async throws {
        try await ScriptedBroker.with(.silence, timeout: .milliseconds(300)) { _, client in
            await #expect(throws: ClientError.timedOut(what: "GET /v1/status", seconds: 0.3)) {
                try await client.status()
            }
        }
    }

    @Test func `a response without end is aborted`() async throws {
        let piece = String(repeating: "x", count: 1 << 20)
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 40000000\r\n\r\n"

        try await ScriptedBroker.with(.open([head] + Array(repeating: piece, count: 20))) { _, client in
            let error = await #expect(throws: ClientError.self) { try await client.status() }
            #expect(error?.description.contains("larger than") == true)
        }
    }

    @Test func `a missing socket means that no broker is running`() async throws {
        let missing = PatchbayClient(address: .unix(path: "/nonexistent/patchbay.sock"))

        await #expect(throws: ClientError.brokerNotRunning(path: "/nonexistent/patchbay.sock")) {
            try await missing.status()
        }
    }

    @Test(arguments: [("/dev/null", "it is a file"), ("/tmp", "it is a folder")])
    func `a path that is not a socket is reported with its kind`(path: String, reason: String) async throws {
        await #expect(throws: ClientError.unusablePath(path: path, reason: reason)) {
            try await PatchbayClient(address: .unix(path: path)).status()
        }
    }

    @Test(arguments: ["relative.sock", "/" + String(repeating: "x", count: 107)])
    func `an invalid socket path is rejected before connecting`(path: String) async throws {
        let error = await #expect(throws: ClientError.self) {
            try await PatchbayClient(address: .unix(path: path)).status()
        }

        guard case .unusablePath = error else {
            Issue.record("unusable path was expected, not \(String(describing: error))")
            return
        }
    }
}
