import Glibc
import Model
import SystemIO
import Testing

@testable import Apps

/// One request and its response, over a connection to a server that has answered already.
@Suite struct HTTPExchangeTests {
    /// `{"a":1}` (Python 3.11: `gzip.compress`).
    private static let gzip: [UInt8] = [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xAB, 0x56, 0x4A, 0x54,
        0xB2, 0x32, 0xAC, 0x05, 0x00, 0xAF, 0xAC, 0x1B, 0x56, 0x07, 0x00, 0x00, 0x00,
    ]
    private static let events = "event: ping\ndata: hello\n\ndata: {\"a\":1}\n\nda"

    private static func response(
        _ head: String,
        _ body: some Sequence<UInt8>,
        accept: String = "application/json, text/event-stream",
        limit: Int = 1 << 20
    ) async throws -> AppResponse {
        let (near, far) = try loopbackSocketPair()
        let server = Descriptor(owning: far)
        let bytes = Array("HTTP/1.1 200 OK\r\n\(head)\r\n\r\n".utf8) + body
        #expect(bytes.withUnsafeBytes { send(server.number, $0.baseAddress, $0.count, 0) } == bytes.count)
        var exchange = HTTPExchange(
            AppHTTPRequest("GET", "/", accept: accept),
            over: AppConnection(
                over: .network(NetworkRoute(address: "127.0.0.1", port: 1)),
                Connection(descriptor: Descriptor(owning: near), halfClose: .propagates)
            ),
            limits: ResponseLimits(idle: .milliseconds(100), bytes: limit),
            clock: PollerClock()
        )
        defer { shutdown(server.number, CInt(SHUT_RDWR)) }
        return try await exchange.response()
    }

    @Test func `a compressed body is decoded`() async throws {
        let head = "Content-Encoding: gzip\r\nContent-Length: \(Self.gzip.count)"

        #expect(try await Self.response(head, Self.gzip).json == ["a": 1])
    }

    @Test func `the first message of an open event stream is the response`() async throws {
        let response = try await Self.response("Content-Type: text/event-stream", Self.events.utf8)

        #expect(response.json == ["a": 1])
    }

    @Test func `a body is no event stream for a request that accepts none`() async throws {
        let head = "Content-Type: text/event-stream\r\nContent-Length: \(Self.events.utf8.count)"

        #expect(try await Self.response(head, Self.events.utf8, accept: "*/*").body == Array(Self.events.utf8))
    }

    @Test func `a response above the limit, and one that does not end, are errors`() async {
        await #expect(throws: ExchangeError.tooLarge(limit: 3)) {
            try await Self.response("Content-Length: 4", "1234".utf8, limit: 3)
        }
        await #expect(throws: ExchangeError.timedOut(seconds: 0)) {
            try await Self.response("Content-Length: 4", "123".utf8)
        }
    }
}
