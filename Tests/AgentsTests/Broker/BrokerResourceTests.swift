import AccessControl
import Model
import Registry
import Samples
import Testing

@testable import Agents
@testable import Apps

@Suite struct BrokerResourceTests {
    private func read(_ uri: String, _ fixture: BrokerFixture, of principal: Principal = BrokerFixture.owner)
        async throws
        -> JSON
    {
        let result = try await fixture.handler.answer(
            MCPRequest("resources/read", ["uri": .string(uri)]),
            of: principal
        )
        let content = try #require(result["contents"]?.array?.first)
        #expect(content["uri"] == .string(uri) && content["mimeType"] == "application/json")
        return try JSON(parsing: content["text"]?.string ?? "")
    }

    @Test func `the endpoint list, each endpoint and the devices can be read`() async throws {
        let fixture = BrokerFixture()
        let id = try await fixture.addEndpoint()

        let list = try await fixture.handler.answer(MCPRequest("resources/list"), of: BrokerFixture.owner)

        let uris = list["resources"]?.array?.compactMap { $0["uri"]?.string }
        #expect(uris == ["patchbay://endpoints", "patchbay://devices", "patchbay://endpoint/\(id)"])
        #expect(try await read("patchbay://endpoints", fixture)["endpoints"]?.array?.first?["id"] == .string(id.text))
        #expect(try await read("patchbay://endpoint/\(id)", fixture)["routes"]?.array?.first?["port"] == 4_000)
        #expect(try await read("patchbay://devices", fixture)["devices"] == [])
    }

    @Test func `a grant cannot read other endpoints or the devices`() async throws {
        let fixture = BrokerFixture()
        let id = try await fixture.addEndpoint()
        let principal = BrokerFixture.grant([.registryRead], on: .bundles(["other"]))

        for uri in ["patchbay://endpoint/\(id)", "patchbay://devices", "patchbay://no", "file:///etc/passwd"] {
            await #expect(throws: RPCError.resourceNotFound(uri)) { try await read(uri, fixture, of: principal) }
        }
        let list = try await fixture.handler.answer(MCPRequest("resources/list"), of: principal)
        #expect(list["resources"]?.array?.count == 1)
    }

    @Test func `a resource that a principal cannot read cannot be subscribed to`() async throws {
        let fixture = BrokerFixture()
        let id = try await fixture.addEndpoint()
        let transport = StreamableHTTPTransport(
            fixture.handler,
            sessions: SessionStore(key: SessionIDSigner()),
            keepAliveTimer: KeepAliveTimer()
        )
        func post(_ method: String, _ params: JSONObject, _ principal: Principal, session: String? = nil) async throws
            -> (headers: [MCPHTTPResponse.Header], JSON)
        {
            var recorder = ResponseRecorder()
            let headers = session.map { ["Mcp-Session-Id": [$0]] } ?? [:]
            let call = TransportFixture.call(TransportFixture.request(method, params), headers: headers)
            try await transport.serve(call, of: principal, to: &recorder)
            let reply = try #require(recorder.reply)
            return (reply.headers, try JSON(parsing: reply.body))
        }
        let own = BrokerFixture.grant([.registryRead], on: .endpoints([id]))
        let other = BrokerFixture.grant([.registryRead], on: .bundles(["other"]))
        let blind = BrokerFixture.grant([.endpointCall])
        let endpoint = "patchbay://endpoint/\(id)"
        let table: [(Principal, String, Bool)] = [
            (BrokerFixture.owner, "patchbay://endpoints", true), (BrokerFixture.owner, endpoint, true),
            (BrokerFixture.owner, "patchbay://devices", true), (BrokerFixture.owner, "patchbay://nope", false),
            (BrokerFixture.owner, "patchbay://endpoint/nobody", false), (own, endpoint, true),
            (own, "patchbay://devices", false), (other, "patchbay://endpoints", true), (other, endpoint, false),
            (blind, "patchbay://endpoints", false),
        ]

        for (principal, uri, isThere) in table {
            let initialize: JSONObject = ["protocolVersion": "2025-11-25", "capabilities": [:]]
            let begun = try await post("initialize", initialize, principal).headers
            let session = begun.first { $0.name == "Mcp-Session-Id" }?.value
            let (_, answer) = try await post("resources/subscribe", ["uri": .string(uri)], principal, session: session)

            #expect(answer["result"] == (isThere ? [:] : nil), "\(uri)")
            #expect(answer["error"]?["code"]?.int == (isThere ? nil : -32_002), "\(uri)")
        }
    }

    @Test func `many endpoints are returned in pages`() async throws {
        let fixture = BrokerFixture()
        for number in 100..<160 { try await fixture.addEndpoint(on: "h\(number).local") }
        var uris: Set<String> = []
        var params: JSONObject = [:]

        repeat {
            let page = try await fixture.handler.answer(MCPRequest("resources/list", params), of: BrokerFixture.owner)
            uris.formUnion(page["resources"]?.array?.compactMap { $0["uri"]?.string } ?? [])
            params["cursor"] = page["nextCursor"]
        } while params["cursor"] != nil

        #expect(uris.count == 62)
    }

    @Test func `an artifact is read at every URL, as text or as bytes, by permitted principals only`() async throws {
        struct FakeArtifacts: ArtifactReader {
            func artifact(_ sha: String, for principal: Principal) async -> Artifact? {
                guard principal.isOwner else { return nil }
                return switch sha {
                case "png": Artifact(bytes: [0x89, 0x50, 0xFF], mimeType: "image/png")
                case "txt": Artifact(bytes: Array("häh".utf8), mimeType: "text/plain")
                default: nil
                }
            }
        }
        let transport = StreamableHTTPTransport(
            ScriptedHandler(),
            sessions: SessionStore(key: SessionIDSigner()),
            keepAliveTimer: KeepAliveTimer(),
            artifacts: FakeArtifacts()
        )
        func read(_ sha: String, of principal: Principal = BrokerFixture.owner) async throws -> JSON {
            var recorder = ResponseRecorder()
            let call = TransportFixture.stateless("resources/read", ["uri": .string("patchbay://artifact/\(sha)")])
            try await transport.serve(call, of: principal, to: &recorder)
            return try JSON(parsing: recorder.reply?.body ?? [])
        }

        #expect(try await read("png")["result"]?["contents"]?.array?.first?["blob"] == "iVD/")
        #expect(try await read("txt")["result"]?["contents"]?.array?.first?["text"] == "häh")
        #expect(try await read("no")["error"]?["code"] == -32_602)
        #expect(try await read("png", of: BrokerFixture.grant([.endpointCall]))["error"] != nil)
    }

    /// A phone with one app, whose log has 600 lines.
    private struct LoggingPhone: PhoneLogSource {
        let size: Int

        func user(ofPort port: UInt16, on udid: UDID) async throws -> UInt32? { 10_234 }
        func user(ofPackage package: SanitizedText, on udid: UDID) async throws -> UInt32? { nil }
        func package(ofUser user: UInt32, on udid: UDID) async throws -> SanitizedText? {
            SanitizedText("com.example.shop")
        }
        func past(of udid: UDID, user: UInt32?, lines: Int) async throws -> PhoneLogPast {
            let raw = (0..<600).suffix(lines).map { number in
                RawPhoneLogLine.sample("\(number) " + String(repeating: "x", count: size))
            }
            return PhoneLogPast(lines: raw, position: PhoneLogPosition())
        }
        func follow(
            _ udid: UDID,
            user: UInt32?,
            from position: PhoneLogPosition,
            _ receive: @escaping @Sendable ([PhoneLogEvent<RawPhoneLogLine>]) -> Void
        ) async throws {}
    }

    @Test(arguments: [10, 1_000]) func `the newest lines of an app on an Android phone are a text`(size: Int)
        async throws
    {
        let logs = PhoneLogService(LoggingPhone(size: size), users: PhoneAppUsers(), secrets: { [] }) { _, _, _ in }
        let fixture = BrokerFixture(logs: logs)
        let udid: UDID = "android-R58M12ABCDE"
        let sighting = Sighting(
            id: Sighting.ID(source: .adb, key: "1"),
            kind: .appreveal,
            app: SanitizedText("com.example.shop"),
            appIsBundleID: true,
            name: SanitizedText("Shop"),
            device: udid,
            routes: [.usb(USBRoute(udid: udid, port: 4_000))]
        )
        await fixture.registry.apply(.seen(sighting))
        let id = try #require(await fixture.registry.endpoint(seenAs: sighting.id)).id
        let uri = "patchbay://endpoint/\(id)/log"
        let caller = BrokerFixture.grant([.registryRead, .endpointCall], on: .endpoints([id]))

        for (principal, isListed) in [(caller, true), (BrokerFixture.grant([.registryRead]), false)] {
            let list = try await fixture.handler.answer(MCPRequest("resources/list"), of: principal)
            #expect(list["resources"]?.array?.contains { $0["uri"] == .string(uri) } == isListed)
        }
        let result = try await fixture.handler.answer(MCPRequest("resources/read", ["uri": .string(uri)]), of: caller)
        let content = try #require(result["contents"]?.array?.first)
        let lines = try #require(content["text"]?.string).split(separator: "\n")
        #expect(content["mimeType"] == "text/plain")
        #expect(lines.last?.hasPrefix("11-26 10:00:00.000    47 I Shop: 599 x") == true)
        #expect(lines.count == (size == 10 ? 500 : 63), "\(lines.count)")
        let other = BrokerFixture.grant([.registryRead, .endpointCall], on: .bundles(["other"]))
        await #expect(throws: RPCError.resourceNotFound(uri)) {
            try await fixture.handler.answer(MCPRequest("resources/read", ["uri": .string(uri)]), of: other)
        }
        await #expect(throws: RPCError.self) {
            try await fixture.handler.answer(MCPRequest("resources/subscribe", ["uri": .string(uri)]), of: caller)
        }
    }
}
