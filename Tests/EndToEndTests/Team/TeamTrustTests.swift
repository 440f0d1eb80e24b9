import FoundationEssentials
import Glibc
import Model
import SystemIO
import TestSupport
import Testing

/// The hosts that the team listener accepts.
@Suite(.needs(.etcd, .openssl, .python), .timeLimit(.minutes(5)), .scratchFolder) struct TeamTrustTests {
    private let scratch = ScratchFolder.current

    /// A caller that claims every permission.
    private static var caller: String {
        let permissions = #"{"scopes":["registry.read","endpoint.call","tunnel.open"],"selector":"all"}"#
        let json = #"{"holder":"uid:0","isAgent":false,"name":"user 0","permissions":\#(permissions)}"#
        let value = Data(json.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
        return "Patchbay-Caller: \(value.replacing("=", with: ""))"
    }

    private func identity(of broker: RunningBroker) -> (path: String, key: String) {
        ("\(broker.state)/team/host.pem", "\(broker.state)/team/host.pem")
    }

    @Test func `only a certificate of the team makes a caller count`() async throws {
        let team = try await RunningTeam(in: scratch)
        let address = team.addresses[1]
        let member = try await team.request(
            "/v1/leases",
            to: address,
            certificate: identity(of: team.lab1),
            headers: [Self.caller]
        )
        #expect(member.status == 200, "\(member)")
        for path in ["/v1/endpoints", "/v1/tunnels", "/v1/events", "/metrics", "/mcp", "/health"] {
            let refused = try await team.request(
                path,
                to: address,
                certificate: identity(of: team.lab1),
                headers: [Self.caller]
            )
            #expect(refused.status == 403 && refused.body.contains("apps, streams, leases"), "\(refused)")
        }
        let silent = try await team.request("/v1/leases", to: address, certificate: identity(of: team.lab1))
        #expect(silent.status == 403, "\(silent)")
        let forged = try await team.request("/v1/leases", to: address, certificate: nil, headers: [Self.caller])
        #expect(forged.status == 401, "\(forged)")
        for path in ["/health", "/openapi.json", "/v1/team"] {
            let refused = try await team.request(path, to: address, certificate: nil)
            #expect(refused.status == 401 && refused.body.contains("no certificate of the team"), "\(refused)")
        }
        let other = try await EtcdCertificates(in: scratch).issue("lab1")
        let foreign = try await team.request(
            "/v1/leases",
            to: address,
            certificate: (other.certificatePath, other.keyPath),
            headers: [Self.caller]
        )
        #expect(foreign.status == 0, "\(foreign)")
    }

    @Test func `a removed host is cut off at once, and refused from then on`() async throws {
        let team = try await RunningTeam(in: scratch)
        let echo = try EchoServer(in: scratch)
        _ = try await team.lab1.ask("add", "echo", "127.0.0.1:\(echo.port)", "--kind", "mcp")
        try await team.waitForEndpoint("echo.lab1", at: team.lab2)
        let port = try await team.lab2.forward("tcp:0", "--endpoint", "echo.lab1")
        let client = try await SocketStream.connect(to: .ipv4(INADDR_LOOPBACK, port: port))
        try await client.send([1])
        #expect(try await client.receive(1) == [1])
        _ = try await team.lab2.ask("add", "other", "127.0.0.1:\(echo.port)", "--kind", "mcp")
        try await team.waitForEndpoint("other.lab2", at: team.lab1)
        let otherPort = try await team.lab1.forward("tcp:0", "--endpoint", "other.lab2")
        let outgoing = try await SocketStream.connect(to: .ipv4(INADDR_LOOPBACK, port: otherPort))
        try await outgoing.send([2])
        #expect(try await outgoing.receive(1) == [2])

        _ = try await team.lab1.ask("team", "remove", "lab2")

        await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
        await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await outgoing.receiveSome() }
        let refused = try await team.request(
            "/v1/leases",
            to: team.addresses[0],
            certificate: identity(of: team.lab2),
            headers: [Self.caller]
        )
        #expect(refused.status == 403 && refused.body.contains("not a member"), "\(refused)")
        try await team.waitUntil { try await team.lab2.teamStatus().problem == "lab2 was removed from the team" }
        #expect(try await team.lab2.ask("status").contains("try: patchbay team leave"))
        // etcd refuses a removed host after a restart.
        try await team.lab2.restart()
        #expect(try await team.lab2.teamStatus().problem == "lab2 was removed from the team")
    }

    @Test(.needs(.usbmuxd)) func `a stream to a phone at a removed host ends at once`() async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let app = try EchoServer(in: scratch)
        let team = try await RunningTeam(in: scratch, phones: rig)
        try await team.waitUntil { try await team.lab1.ask("devices").joined().contains(Phones.one) }
        let port = try FreePorts.take()[0]
        let iproxy = try await team.lab1.start("iproxy", "\(port):\(app.port)", "-u", Phones.one)
        try await iproxy.waitForLine("waiting for connection")
        let client = try await SocketStream.connect(to: .ipv4(INADDR_LOOPBACK, port: port))
        try await client.send([1])
        #expect(try await client.receive(1) == [1])

        _ = try await team.lab1.ask("team", "remove", "lab2")

        await #expect(throws: SocketStream.Failure(code: ECONNRESET)) { try await client.receiveSome() }
    }
}
