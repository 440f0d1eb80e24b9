import Model
import TestSupport
import Testing

@testable import Apps

@Suite struct ChangeStreamReaderTests {
    /// Reads a stream once and returns the status, the sent messages and the cancelled requests.
    private static func read(
        _ server: ServerInfo,
        uris: [String] = [],
        _ answer: @escaping @Sendable (UpstreamMessage) throws -> UpstreamResponse
    ) async throws -> (status: Int?, sent: [JSON?], cancelled: [JSONNumber]) {
        let (sent, cancelled) = (Replay<JSON?>(), Replay<JSONNumber>())
        let reader = ChangeStreamReader(
            server: server,
            uris: uris,
            limits: .changeStream(idle: .seconds(1)),
            opened: {},
            newID: { JSONNumber(7) },
            send: { message in
                sent.say(message.json)
                return try answer(message)
            },
            cancel: { cancelled.say($0) }
        )
        return (try await reader.read(), sent.soFar, cancelled.soFar)
    }

    private static func response(_ status: Int, _ outcome: Result<JSON, RPCError>? = nil) -> UpstreamResponse {
        UpstreamResponse(status: status, sessionID: nil, outcome: outcome, size: 0)
    }

    private static func stateless(_ transport: ServerInfo.Transport) throws -> ServerInfo {
        try #require(ServerInfo(discovery: ["supportedVersions": ["2026-07-28"]], at: transport))
    }

    @Test func `a new session subscribes to all resources again, and then reads its stream`() async throws {
        let server = try ServerInfo(handshake: ["protocolVersion": "2025-06-18"], at: .http(path: "/"), sessionID: "s")

        let (status, sent, _) = try await Self.read(server, uris: ["a://1", "a://2"]) { _ in Self.response(200) }

        #expect(status == 200)
        #expect(sent.map { $0?["method"]?.string } == ["resources/subscribe", "resources/subscribe", nil])
        #expect(sent.map { $0?["params"]?["uri"]?.string } == ["a://1", "a://2", nil])
    }

    @Test func `a stateless server gets the resources as a filter of one request`() async throws {
        let (_, sent, _) = try await Self.read(Self.stateless(.lines), uris: ["a://1"]) { _ in Self.response(200) }

        #expect(sent.count == 1)
        #expect(sent[0]?["method"] == "subscriptions/listen")
        #expect(sent[0]?["params"]?["notifications"]?["resourceSubscriptions"] == ["a://1"])
    }

    @Test func `an error of a stateless server means that it has no stream`() async throws {
        let (status, _, _) = try await Self.read(Self.stateless(.http(path: "/"))) { _ in
            Self.response(200, .failure(RPCError(-32_601, "unknown")))
        }

        #expect(status == 405)
    }

    @Test func `an idle stream is not an error, and is cancelled at a server with lines`() async throws {
        for (transport, cancelled) in [(ServerInfo.Transport.http(path: "/"), 0), (.lines, 1)] {
            let result = try await Self.read(Self.stateless(transport)) { _ in throw AppError.timedOut(seconds: 300) }

            #expect(result.status == nil)
            #expect(result.cancelled.count == cancelled)
        }
    }
}
