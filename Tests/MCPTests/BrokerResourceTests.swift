import JSON
import Model
import Testing

@testable import MCP

@Suite struct BrokerResourceTests {
    private func read(_ uri: String, _ bench: BrokerBench, of caller: AgentCaller = BrokerBench.owner) async throws
        -> JSON
    {
        let result = try await bench.server.answer(MCPRequest("resources/read", ["uri": .string(uri)]), of: caller)
        let content = try #require(result["contents"]?.array?.first)
        #expect(content["uri"] == .string(uri) && content["mimeType"] == "application/json")
        return try JSON(parsing: content["text"]?.string ?? "")
    }

    @Test func `the list, each endpoint and the phones can be read`() async throws {
        let bench = BrokerBench()
        let id = try await bench.see()

        let list = try await bench.server.answer(MCPRequest("resources/list"), of: BrokerBench.owner)

        let uris = list["resources"]?.array?.compactMap { $0["uri"]?.string }
        #expect(uris == ["patchbay://endpoints", "patchbay://devices", "patchbay://endpoint/\(id)"])
        #expect(try await read("patchbay://endpoints", bench)["endpoints"]?.array?.first?["id"] == .string(id.text))
        #expect(try await read("patchbay://endpoint/\(id)", bench)["routes"]?.array?.first?["port"] == 4_000)
        #expect(try await read("patchbay://devices", bench)["devices"] == [])
    }

    @Test func `what a grant is not about cannot be read, nor can phones`() async throws {
        let bench = BrokerBench()
        let id = try await bench.see()
        let caller = BrokerBench.grant([.registryRead], on: .bundles(["other"]))

        for uri in ["patchbay://endpoint/\(id)", "patchbay://devices", "patchbay://no", "file:///etc/passwd"] {
            await #expect(throws: RPCError.unknownResource(uri)) { try await read(uri, bench, of: caller) }
        }
        let list = try await bench.server.answer(MCPRequest("resources/list"), of: caller)
        #expect(list["resources"]?.array?.count == 1)
    }

    @Test func `what cannot be read cannot be subscribed to`() async throws {
        let bench = BrokerBench()
        let id = try await bench.see()
        let door = StreamableHTTPTransport(
            bench.server,
            sessions: SessionStore(key: SessionIDSigner()),
            heartbeat: KeepAliveTimer()
        )
        func post(_ method: String, _ params: JSONObject, _ caller: AgentCaller, session: String? = nil) async throws
            -> (headers: [MCPHTTPResponse.Header], JSON)
        {
            var answers = Answers()
            let headers = session.map { ["Mcp-Session-Id": [$0]] } ?? [:]
            let call = DoorBench.call(DoorBench.request(method, params), headers: headers)
            try await door.serve(call, of: caller, to: &answers)
            let reply = try #require(answers.reply)
            return (reply.headers, try JSON(parsing: reply.body))
        }
        let own = BrokerBench.grant([.registryRead], on: .endpoints([id]))
        let other = BrokerBench.grant([.registryRead], on: .bundles(["other"]))
        let blind = BrokerBench.grant([.endpointCall])
        let endpoint = "patchbay://endpoint/\(id)"
        let table: [(AgentCaller, String, Bool)] = [
            (BrokerBench.owner, "patchbay://endpoints", true), (BrokerBench.owner, endpoint, true),
            (BrokerBench.owner, "patchbay://devices", true), (BrokerBench.owner, "patchbay://nope", false),
            (BrokerBench.owner, "patchbay://endpoint/nobody", false), (own, endpoint, true),
            (own, "patchbay://devices", false), (other, "patchbay://endpoints", true), (other, endpoint, false),
            (blind, "patchbay://endpoints", false),
        ]

        for (caller, uri, isThere) in table {
            let hello: JSONObject = ["protocolVersion": "2025-11-25", "capabilities": [:]]
            let begun = try await post("initialize", hello, caller).headers
            let session = begun.first { $0.name == "Mcp-Session-Id" }?.value
            let (_, answer) = try await post("resources/subscribe", ["uri": .string(uri)], caller, session: session)

            #expect(answer["result"] == (isThere ? [:] : nil), "\(uri)")
            #expect(answer["error"]?["code"]?.int == (isThere ? nil : -32_002), "\(uri)")
        }
    }

    @Test func `many endpoints come in pages`() async throws {
        let bench = BrokerBench()
        for number in 100..<160 { try await bench.see(on: "h\(number).local") }
        var uris: Set<String> = []
        var params: JSONObject = [:]

        repeat {
            let page = try await bench.server.answer(MCPRequest("resources/list", params), of: BrokerBench.owner)
            uris.formUnion(page["resources"]?.array?.compactMap { $0["uri"]?.string } ?? [])
            params["cursor"] = page["nextCursor"]
        } while params["cursor"] != nil

        #expect(uris.count == 62)
    }

    @Test func `an artifact is read at every address, as text or as bytes, by who may`() async throws {
        struct Shelf: ArtifactReader {
            func artifact(_ sha: String, for caller: AgentCaller) async -> Artifact? {
                guard caller.isOwner else { return nil }
                return switch sha {
                case "png": Artifact(bytes: [0x89, 0x50, 0xFF], mimeType: "image/png")
                case "txt": Artifact(bytes: Array("häh".utf8), mimeType: "text/plain")
                default: nil
                }
            }
        }
        let door = StreamableHTTPTransport(
            ScriptedServer(),
            sessions: SessionStore(key: SessionIDSigner()),
            heartbeat: KeepAliveTimer(),
            artifacts: Shelf()
        )
        func read(_ sha: String, of caller: AgentCaller = BrokerBench.owner) async throws -> JSON {
            var answers = Answers()
            let call = DoorBench.modern("resources/read", ["uri": .string("patchbay://artifact/\(sha)")])
            try await door.serve(call, of: caller, to: &answers)
            return try JSON(parsing: answers.reply?.body ?? [])
        }

        #expect(try await read("png")["result"]?["contents"]?.array?.first?["blob"] == "iVD/")
        #expect(try await read("txt")["result"]?["contents"]?.array?.first?["text"] == "häh")
        #expect(try await read("no")["error"]?["code"] == -32_602)
        #expect(try await read("png", of: BrokerBench.grant([.endpointCall]))["error"] != nil)
    }
}
