import FoundationEssentials
import Model
import TestSupport
import Testing

/// The requests to WebDriverAgent, compared with those of facebook-wda.
@Suite(.needs(.python), .timeLimit(.minutes(3)), .scratchFolder) struct WebDriverAgentTests {
    private let scratch = ScratchFolder.current

    /// A request that a server received, without the ID of the session.
    private struct Request: CustomStringConvertible {
        let method: String
        let path: String
        let body: JSON

        init?(_ line: String) {
            guard line.hasPrefix("request: "), let json = try? JSON(parsing: String(line.dropFirst("request: ".count))),
                let method = json["method"]?.string, let path = json["path"]?.string
            else { return nil }
            self.method = method
            self.path = path.replacing(#/\/session\/S-\d+/#, with: "/session/S")
            body = json["body"] ?? .null
        }

        /// Returns whether the other request has this method, path and at least these members of the body.
        func isContained(in other: Request) -> Bool {
            let members = body.object?.members ?? []
            return method == other.method && path == other.path
                && members.allSatisfy { member in Self.areEqual(other.body[member.name], member.value) }
        }

        private static func areEqual(_ one: JSON?, _ other: JSON) -> Bool {
            if let first = one?.number?.double, let second = other.number?.double { return first == second }
            return one == other
        }

        var description: String { "\(method) \(path) \(body.text)" }
    }

    private static func startServer(in scratch: ScratchFolder) async throws -> (Program, port: UInt16) {
        let server = try await Program("python3", ["\(TestSupportFolder.sources)/webdriveragent.py"], in: scratch)
        let line = try await server.waitForLine("listening on ")
        return (server, try #require(UInt16(line.dropFirst("listening on ".count))))
    }

    private static func characters(_ request: Request) -> String? {
        request.body["value"]?.array?.compactMap(\.string).joined()
    }

    private static func requests(to server: Program) -> [Request] { server.output.compactMap(Request.init) }

    @Test func `the tools send the requests that facebook-wda sends`() async throws {
        let (peerServer, peerPort) = try await Self.startServer(in: scratch)
        let python = try await PythonPeers.facebookWDA(in: scratch)
        let script = "\(AgentPeer.folder)/wda_peer.py"
        let said = try await Program.run(python, [script, "http://127.0.0.1:\(peerPort)"], in: scratch)
        #expect(said == ["Buy"])
        let expected = Self.requests(to: peerServer)

        let (server, port) = try await Self.startServer(in: scratch)
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let added = try await broker.ask("add", "Phone", "127.0.0.1:\(port)", "--kind", "webdriveragent")
        let id = try #require(added.first?.split(separator: " ").last?.dropLast()).description
        let calls = [
            (["status"], #""ready":true"#), (["source"], "<XCUIElementTypeApplication/>"),
            (["active_app"], #""bundleId":"com.example.shop""#), (["window_size"], #"{"width":390,"height":844}"#),
            (["tap", "x=10", "y=20"], "null"),
            (["drag", "from_x=1", "from_y=2", "to_x=3", "to_y=4", "duration=0.5"], "null"),
            (["press_button", "name=home"], "null"), (["press_button", "name=volumeUp"], "null"),
            (["open_url", "url=https://x.test/a"], "null"), (["launch_app", "bundle_id=com.example.shop"], "null"),
            (["terminate_app", "bundle_id=com.example.shop"], "true"), (["text", "element=E-1"], #""Buy""#),
            (["click", "element=E-1"], "null"),
        ]
        for (words, result) in calls {
            let seen = Self.requests(to: server).count
            let call = try await broker.start(["call", id] + words)
            #expect(try await call.exitStatus() == .exited(0), "\(call.log)")
            #expect(call.log.contains(result), "\(words): \(call.log)")
            let sent = try #require(Self.requests(to: server)[seen...].last)
            #expect(expected.contains { sent.isContained(in: $0) }, "\(sent) is not among \(expected)")
        }
        // facebook-wda sends the text, the tool also sends it as the list of JSON Wire Protocol.
        _ = try await broker.ask("call", id, "type", "element=E-1", "text=hello")
        #expect(Self.requests(to: server).last?.body.text == #"{"text":"hello","value":["hello"]}"#)
        // facebook-wda sends a list of characters, which WebDriverAgent joins.
        _ = try await broker.ask("call", id, "type_text", "text=7\u{8}")
        let typed = try #require(Self.requests(to: server).last)
        let keys = try #require(expected.last { $0.path == typed.path })
        #expect(typed.path == "/session/S/wda/keys" && Self.characters(typed) == Self.characters(keys), "\(typed)")
        let described = try await broker.ask("call", id, "source", "format=description")
        #expect(described.joined().contains("Application, pid: 7"))
        let shot = try await broker.ask("call", id, "screenshot")
        #expect(shot.first?.hasPrefix("[image/png") == true, "\(shot)")
        let found = try await broker.ask("call", id, "find", "using=xpath", "value=//XCUIElementTypeButton")
        #expect(found.joined().contains("E-1"))
        // facebook-wda asks for all elements, the tool for the first one.
        let find = try #require(Self.requests(to: server).last)
        #expect(find.path == "/session/S/element")
        #expect(expected.contains { $0.path == "/session/S/elements" && $0.body == find.body })
        #expect(Self.requests(to: server).count { $0.path == "/session" } == 1)
    }

    @Test func `an error of WebDriverAgent is the error of the call`() async throws {
        let (_, port) = try await Self.startServer(in: scratch)
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let added = try await broker.ask("add", "Phone", "127.0.0.1:\(port)", "--kind", "webdriveragent")
        let id = try #require(added.first?.split(separator: " ").last?.dropLast()).description

        let call = try await broker.start("call", id, "click", "element=E-9")

        #expect(try await call.exitStatus() == .exited(1))
        #expect(call.log.contains("The element identified by 'E-9' is unknown"), "\(call.log)")
    }

    @Test func `the session of another client is shared and not ended`() async throws {
        let (server, port) = try await Self.startServer(in: scratch)
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let added = try await broker.ask("add", "Phone", "127.0.0.1:\(port)", "--kind", "webdriveragent")
        let id = try #require(added.first?.split(separator: " ").last?.dropLast()).description
        let url = "http://127.0.0.1:\(port)/session"
        _ = try await Program.run("curl", ["-sS", "-d", #"{"capabilities":{}}"#, url], in: scratch)

        _ = try await broker.ask("call", id, "window_size")

        let requests = Self.requests(to: server)
        #expect(requests.count { $0.method == "POST" && $0.path == "/session" } == 1)
        #expect(requests.last?.path == "/session/S/window/size")
    }
}
