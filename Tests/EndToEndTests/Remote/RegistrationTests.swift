import FoundationEssentials
import Glibc
import Model
import TestSupport
import Testing

/// Apps that register themselves from another machine, on a network without multicast.
@Suite(.needs(.root, .namespaces, .python, .openssl), .timeLimit(.minutes(2)), .scratchFolder) struct RegistrationTests
{
    private let scratch = ScratchFolder.current
    private static let path = "/v1/registrations"
    private static let device = "Anna's phone"

    /// An app on the other machine, new at each launch.
    private struct App {
        let program: Program
        let port: String
        let token: String
        let boot: String

        func json(_ bundle: String = "com.example.shop", kind: String = "appreveal") -> String {
            #"{"app":"\#(bundle)","version":"3.2.0","port":\#(port),"protocol":"\#(kind)","launchID":"\#(boot)","#
                + #""capabilities":["tools"],"secret":"\#(token)"}"#
        }
    }

    private func launch(_ boot: String, on machines: RemoteMachines) async throws -> App {
        let token = "session-token-of-\(boot)"
        let options = ["--mode", "ios", "--address", "0.0.0.0", "--boot", boot, "--token", token]
        let program = try await Program(
            "python3",
            ["\(TestSupportFolder.sources)/sampleapp.py", "--bundle", "com.example.shop"] + options,
            in: machines.scratch,
            namespace: machines.client
        )
        let port = try await program.waitForLine("listening on ").dropFirst("listening on ".count)
        return App(program: program, port: String(port), token: token, boot: boot)
    }

    /// Sends a request from the other machine, as an app without one of the snippets would.
    private func curl(
        _ method: String,
        _ path: String,
        _ body: String? = nil,
        token: String = "",
        _ machines: RemoteMachines,
        from machine: NetworkNamespace? = nil,
        to host: String = RemoteMachines.brokerHost
    ) async throws -> (status: String?, body: String) {
        let pin = try #require(try await status(of: machines).pin)
        let key = "sha256//" + Data(pin.bytes).base64EncodedString()
        let lines = try await Program.run(
            "curl",
            ["-sSk", "--max-time", "8", "--pinnedpubkey", key, "-X", method, "-w", "\n%{http_code}\n"]
                + (token.isEmpty ? [] : ["-H", "Authorization: Bearer \(token)"])
                + (body.map { ["-H", "Content-Type: application/json", "-d", $0] } ?? [])
                + ["https://\(host):\(RemoteMachines.port)\(path)"],
            in: machines.scratch,
            namespace: machine ?? machines.client
        )
        return (lines.last, lines.dropLast().joined(separator: "\n"))
    }

    private func status(of machines: RemoteMachines) async throws -> RemoteStatus {
        let lines = try await machines.owner("remote", "status", "--json")
        return try JSONCoding.decoder().decode(RemoteStatus.self, from: Data(lines.joined(separator: "\n").utf8))
    }

    private func list(_ machines: RemoteMachines) async throws -> [Endpoint] {
        let lines = try await machines.owner("list", "--json")
        return try JSONCoding.decoder().decode(EndpointList.self, from: Data(lines.joined().utf8)).endpoints
    }

    /// Redeems an invite for a device and returns the token of its grant.
    private func redeem(_ machines: RemoteMachines, name: String = device) async throws -> String {
        let string = try PairingString(try await machines.pair("--device"))
        let body = #"{"token":"\#(string.invite)","client":"0123456789abcdefghijkl","name":"\#(name)"}"#
        let (status, answer) = try await curl("POST", "/v1/invites/redeem", body, machines)
        #expect(status == "201", "\(answer)")
        return try #require(try JSONDecoder().decode(IssuedToken.self, from: Data(answer.utf8)).token)
    }

    private struct IssuedToken: Decodable { let token: String? }

    @Test func `the Swift files of docs/joining register an app, and its ID survives a relaunch`() async throws {
        let machines = try await RemoteMachines(in: scratch)
        let client = try await compileSnippet(in: machines.scratch)
        let pairing = try await machines.pair("--device")
        let first = try await launch("one", on: machines)
        func start(_ app: App, _ token: String...) async throws -> Program {
            let program = try await Program(
                client,
                [pairing, Self.device, app.json()] + token,
                in: machines.scratch,
                namespace: machines.client
            )
            try await program.waitForLine("POST \(Self.path) 201")
            return program
        }
        let running = try await start(first)
        let token = try await running.waitForLine("token ").dropFirst("token ".count)

        let endpoint = try #require(try await list(machines).first)
        #expect(endpoint.sources == [.registration] && endpoint.state == .online && endpoint.approval == .approved)
        #expect(endpoint.routes.map(\.description) == ["\(RemoteMachines.clientHost):\(first.port)"])
        #expect(endpoint.routes.map(\.isSecretHeld) == [true] && endpoint.capabilities == ["tools"])
        #expect(endpoint.location.machine?.text == Self.device)
        let id = endpoint.id.text
        let answer = try await machines.owner("call", id, "tap_element", "element_id=5")
        #expect(answer.joined().contains(#""tapped": "5""#))

        // The app quits; the next launch has another port and another session token.
        running.kill()
        first.program.kill()
        _ = try await first.program.exitStatus()
        let second = try await launch("two", on: machines)
        #expect(second.port != first.port)
        _ = try await start(second, String(token))
        let relaunched = try await list(machines)
        #expect(relaunched.map(\.id.text) == [id])
        #expect(relaunched.first?.routes.map(\.description) == ["\(RemoteMachines.clientHost):\(second.port)"])
        let again = try await machines.owner("call", id, "tap_element", "element_id=6")
        #expect(again.joined().contains(#""tapped": "6""#))
        let shown = try await machines.owner("show", id, "--json") + machines.owner("audit", "--json")
        #expect(!shown.joined().contains("session-token-of"))
    }

    /// Compiles the portable files of docs/joining with the part of the test that sends requests through curl.
    private func compileSnippet(in scratch: ScratchFolder) async throws -> String {
        let root = String(#filePath.dropLast("Tests/EndToEndTests/Remote/RegistrationTests.swift".count))
        let files = ["docs/joining/PairingCode.swift", "docs/joining/PatchbayRegistration.swift"]
        let output = scratch.file("app")
        let main = "Tests/EndToEndTests/Remote/joining/main.swift"
        let arguments = ["-o", output] + (files + [main]).map { root + $0 }
        try await Program.run(Self.compiler(in: scratch), arguments, in: scratch, within: .seconds(60))
        return output
    }

    /// The compiler beside the Swift library that this process has loaded. Its folder need not be on PATH.
    private static func compiler(in scratch: ScratchFolder) async throws -> String {
        let library = "/lib/swift/linux/libswiftCore.so"
        let found = try await Program.run("grep", ["-om1", "/.*\(library)", "/proc/\(getpid())/maps"], in: scratch)
        return try #require(found.first).dropLast(library.count) + "/bin/swiftc"
    }

    @Test func `an app registers with curl and a pin, and the end of its grant removes the app`() async throws {
        let machines = try await RemoteMachines(in: scratch)
        let token = try await redeem(machines)
        let app = try await launch("one", on: machines)
        let (status, body) = try await curl("POST", Self.path, app.json(), token: token, machines)
        #expect(status == "201", "\(body)")
        let registration = try JSONDecoder().decode(Registration.self, from: Data(body.utf8))
        #expect(registration.heartbeatSeconds == 30 && !body.contains(app.token))
        let port = try await forward(registration.endpoint.text, machines)
        let path = "\(Self.path)/\(registration.id)"
        #expect(try await curl("PUT", path, token: token, machines).status == "204")

        // Another device neither keeps nor ends it, and the grant allows nothing else.
        let other = try await redeem(machines, name: "other")
        #expect(try await curl("PUT", path, token: other, machines).status == "404")
        #expect(try await curl("DELETE", path, token: other, machines).status == "404")
        #expect(try await curl("GET", "/v1/endpoints", token: token, machines).status == "403")

        let held = try await holdConnection(to: port, machines)
        let grants = try await machines.owner("grants", "--quiet")
        for grant in grants { try await machines.owner("revoke", grant) }
        try await held.waitForLine("closed")
        #expect(try await list(machines).isEmpty)
        #expect(try await curl("POST", Self.path, app.json(), token: token, machines).status == "401")
    }

    /// Opens a connection through a tunnel, and keeps it until the other side ends it.
    private func holdConnection(to port: String, _ machines: RemoteMachines) async throws -> Program {
        let script = """
            import socket
            connection = socket.create_connection(("127.0.0.1", \(port)))
            connection.sendall(b"GET /health HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
            print(connection.recv(12), flush=True)
            try:
                while connection.recv(4096):
                    pass
            except ConnectionResetError:
                pass
            print("closed", flush=True)
            """
        let program = try await Program("python3", ["-c", script], in: machines.scratch, namespace: machines.broker)
        try await program.waitForLine("HTTP/1.1 200")
        return program
    }

    private func forward(_ id: String, _ machines: RemoteMachines) async throws -> String {
        let line = try await machines.owner("forward", "tcp:0", "--endpoint", id, "--detach").first
        return try #require(line?.split(separator: " ").first?.split(separator: ":").last.map(String.init))
    }

    @Test func `an app that ends its registration or stops answering is offline`() async throws {
        let machines = try await RemoteMachines(in: scratch)
        let token = try await redeem(machines)
        let app = try await launch("one", on: machines)
        let (_, body) = try await curl("POST", Self.path, app.json(), token: token, machines)
        let first = try JSONDecoder().decode(Registration.self, from: Data(body.utf8))
        #expect(try await curl("DELETE", "\(Self.path)/\(first.id)", token: token, machines).status == "204")
        #expect(try await list(machines).map(\.state) == [.offline])
        #expect(try await curl("PUT", "\(Self.path)/\(first.id)", token: token, machines).status == "404")

        #expect(try await curl("POST", Self.path, app.json(), token: token, machines).status == "201")
        #expect(try await list(machines).map(\.state) == [.online])
        app.program.kill()
        try await eventually("the app that quit is offline") { try await list(machines).map(\.state) == [.offline] }
    }

    @Test func `an unknown protocol, a port of the system and the broker's own machine are refused`() async throws {
        let machines = try await RemoteMachines(in: scratch)
        let token = try await redeem(machines)
        let body = #"{"app":"a","port":9000,"protocol":"apreveal"}"#
        let unknown = try await curl("POST", Self.path, body, token: token, machines)
        #expect(unknown.status == "400" && unknown.body.contains(#"did you mean \"appreveal\"?"#), "\(unknown)")
        let system = #"{"app":"a","port":22,"protocol":"mcp"}"#
        #expect(try await curl("POST", Self.path, system, token: token, machines).status == "400")

        let right = #"{"app":"a","port":9000,"protocol":"mcp"}"#
        for host in ["127.0.0.1", RemoteMachines.brokerHost] {
            let own = try await curl("POST", Self.path, right, token: token, machines, from: machines.broker, to: host)
            #expect(own.status == "403", "\(host): \(own)")
        }
        // On the broker's machine, an app uses the listener for that machine.
        let answer = try await curlOnBroker("POST", Self.path, right, token: token, machines)
        #expect(answer.contains("heartbeatSeconds"), "\(answer)")
        #expect(try await list(machines).flatMap(\.routes).map(\.description) == ["127.0.0.1:9000"])
        let api = #"{"app":"a","port":7282,"protocol":"mcp"}"#
        let loop = try await curlOnBroker("POST", Self.path, api, token: token, machines)
        #expect(loop.contains("the broker's own"), "\(loop)")
    }

    /// Sends a request to the listener for the broker's machine. Returns the body of the response.
    private func curlOnBroker(
        _ method: String,
        _ path: String,
        _ body: String,
        token: String,
        _ machines: RemoteMachines
    ) async throws -> String {
        let headers = ["-H", "Authorization: Bearer \(token)", "-H", "Content-Type: application/json"]
        return try await Program.run(
            "curl",
            ["-sS", "-X", method, "-d", body] + headers + ["http://127.0.0.1:7282\(path)"],
            in: machines.scratch,
            namespace: machines.broker
        ).joined(separator: "\n")
    }

    @Test func `a registration does not lead to a tunnel that takes its port later`() async throws {
        let machines = try await RemoteMachines(in: scratch)
        let token = try await redeem(machines)
        let app = try await launch("one", on: machines)
        let (_, body) = try await curl("POST", Self.path, app.json(), token: token, machines)
        let victim = try JSONDecoder().decode(Registration.self, from: Data(body.utf8))
        let spec = #"{"app":"com.example.other","port":9000,"protocol":"appreveal"}"#
        let answer = try await curlOnBroker("POST", Self.path, spec, token: token, machines)
        let other = try JSONDecoder().decode(Registration.self, from: Data(answer.utf8))
        try await machines.owner("forward", "tcp:9000", "--endpoint", victim.endpoint.text, "--detach")

        let call = try await machines.startAsOwner("call", other.endpoint.text, "tap_element", "element_id=5")
        let lines = try await call.lines(within: .seconds(20)).map(\.text)
        #expect(lines.contains { $0.contains("Patchbay itself listens on 127.0.0.1:9000") }, "\(lines)")
        #expect(try await call.exitStatus() != .exited(0))
        let tunnel = try await forward(other.endpoint.text, machines)
        let held = try await Program(
            "curl",
            ["-sS", "--max-time", "8", "http://127.0.0.1:\(tunnel)/health"],
            in: machines.scratch,
            namespace: machines.broker
        )
        #expect(try await held.exitStatus() != .exited(0) && held.output.isEmpty, "\(held.log)")

        let path = "\(Self.path)/\(other.id)"
        let refusal = try await curlOnBroker("PUT", path, "", token: token, machines)
        #expect(refusal.contains("port 9000 of this machine is the broker's own"), "\(refusal)")
        let offline = try await list(machines).filter { $0.state == .offline }
        #expect(offline.map(\.id) == [other.endpoint])
    }
}
