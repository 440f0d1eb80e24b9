import Model
import Synchronization
import SystemIO
import Testing

@testable import Apps

/// The bodies of responses as servers send them.
@Suite struct TolerantResponseTests {
    private static let route = Route.network(NetworkRoute(address: "127.0.0.1", port: 1))
    private static let message = #"{"jsonrpc":"2.0","id":1,"result":{"x":1}}"#
    /// The message as gzip and as zlib (Python 3.11).
    private static let gzip: [UInt8] = [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xFF, 0xAB, 0x56, 0xCA, 0x2A, 0xCE, 0xCF,
        0x2B, 0x2A, 0x48, 0x56, 0xB2, 0x52, 0x32, 0xD2, 0x33, 0x50, 0xD2, 0x51, 0xCA, 0x4C, 0x51, 0xB2,
        0x32, 0xD4, 0x51, 0x2A, 0x4A, 0x2D, 0x2E, 0xCD, 0x29, 0x51, 0xB2, 0xAA, 0x56, 0xAA, 0x00, 0xF2,
        0x6B, 0x6B, 0x01, 0xB6, 0xD0, 0x24, 0xED, 0x29, 0x00, 0x00, 0x00,
    ]
    private static let zlib: [UInt8] = [
        0x78, 0x9C, 0xAB, 0x56, 0xCA, 0x2A, 0xCE, 0xCF, 0x2B, 0x2A, 0x48, 0x56, 0xB2, 0x52, 0x32, 0xD2,
        0x33, 0x50, 0xD2, 0x51, 0xCA, 0x4C, 0x51, 0xB2, 0x32, 0xD4, 0x51, 0x2A, 0x4A, 0x2D, 0x2E, 0xCD,
        0x29, 0x51, 0xB2, 0xAA, 0x56, 0xAA, 0x00, 0xF2, 0x6B, 0x6B, 0x01, 0x03, 0x5B, 0x0C, 0x5A,
    ]

    /// Sends a request to a server with this response.
    ///
    /// - Returns: The result, and what was repaired.
    private static func answer(
        _ headers: [String],
        _ body: [UInt8],
        bytes limit: Int = 1 << 20
    ) async throws -> (JSON?, [ServerDeviation.Kind]) {
        let app = ScriptedApp { _ in .bytes(headers, body) }
        let clock = PollerClock()
        let request = RPCMessage.request(RPCRequest(id: .number(JSONNumber(1)), method: "x")).json
        var exchange = HTTPExchange(
            AppHTTPRequest("POST", "/", accept: "application/json, text/event-stream", body: request.bytes),
            over: AppConnection(over: route, try await app.dial(route)),
            limits: ResponseLimits(bytes: limit),
            clock: clock
        )
        let found = Mutex<[ServerDeviation.Kind]>([])
        let record: @Sendable (ServerDeviation.Kind) -> Void = { kind in found.withLock { $0.append(kind) } }
        let decoder = ServerMessageDecoder(redactor: TokenRedactor([]), record: record)
        let response = try await exchange.response(to: .number(JSONNumber(1)), decoder: decoder) { _ in }
        return (try response.outcome?.get(), found.withLock { $0 })
    }

    @Test(arguments: [
        (["Content-Type: application/json"], message, [ServerDeviation.Kind]()),
        (["Content-Type: application/json"], "\u{FEFF}" + message + " \r\n", [.byteOrderMark]),
        ([], message, [.contentType]), (["Content-Type: text/html"], message, [.contentType]),
        (["Content-Type: text/event-stream"], message, [.contentType]),
        (["Content-Type: application/json"], "event: message\ndata: \(message)\n\n", [.contentType]),
        ([], "data: \(message)", [.contentType]),
        (["Content-Type: text/event-stream"], "\u{FEFF}: hello\n\ndata: \(message)\n\n", []),
        (["Content-Type: text/event-stream"], "data: \u{FEFF}\(message)\n\n", [.byteOrderMark]),
        (["Content-Type: text/event-stream"], "data: \(message)\n", []),
        (["Content-Type: text/event-stream"], "data: starting\n\ndata: \(message)\n\n", [.foreignText]),
        (["Content-Type: application/json"], message.replacing(#""id":1"#, with: #""id":"1""#), [.textIDs]),
        (["Content-Type: application/json"], message.replacing(#""jsonrpc":"2.0","#, with: ""), [.invalidRPC]),
        (["Content-Type: application/json"], message.replacing(#""id":1"#, with: #""id":1.0"#), [.invalidRPC]),
    ])
    func `a body is judged by its content`(
        headers: [String],
        body: String,
        deviations: [ServerDeviation.Kind]
    ) async throws {
        let (result, found) = try await Self.answer(headers, Array(body.utf8))

        #expect(result == ["x": 1])
        #expect(found == deviations)
    }

    @Test(arguments: ["\(message) \(message)", "\(message)]", "OK", "<html>", "data: not JSON\n\n"])
    func `a second value and a text without a message are errors`(body: String) async {
        await #expect(throws: AppError.self) {
            try await Self.answer(["Content-Type: application/json"], Array(body.utf8))
        }
    }

    @Test func `compressed bodies are decoded although none was asked for`() async throws {
        for (coding, body) in [("gzip", Self.gzip), ("x-gzip", Self.gzip), ("deflate", Self.zlib)] {
            let headers = ["Content-Type: application/json", "Content-Encoding: \(coding)"]
            let (result, found) = try await Self.answer(headers, body)
            #expect(result == ["x": 1])
            #expect(found == [.contentCoding])
        }
        let plain = try await Self.answer(["Content-Type: a/json", "Content-Encoding: gzip"], Array(Self.message.utf8))
        #expect(plain.0 == ["x": 1])
        await #expect(throws: AppError.invalidResponse("the content coding br, which was not asked for")) {
            try await Self.answer(["Content-Encoding: br"], [0])
        }
        await #expect(throws: AppError.responseLost) {
            try await Self.answer(["Content-Encoding: gzip"], Self.gzip.dropLast(3))
        }
    }

    @Test func `a decompression bomb ends at the size limit`() async {
        // 1 MiB of zeros as zlib.
        let bomb: [UInt8] =
            [0x78, 0xDA, 0xED, 0xC1, 0x31, 0x01, 0, 0, 0, 0xC2, 0xA0, 0xF5, 0x4F, 0x6D, 0x08, 0x5F, 0xA0]
            + [UInt8](repeating: 0, count: 1_016) + [0x3E, 0x03, 0x00, 0xF0, 0x00, 0x01]

        await #expect(throws: AppError.invalidResponse("more than 0 MiB")) {
            try await Self.answer(["Content-Encoding: deflate"], bomb, bytes: 512 << 10)
        }
    }

    @Test func `a result with damaged members is passed on with a note`() async throws {
        let body =
            #"{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"scale":NaN,"a":1,"a":2}}}"#

        let (result, found) = try await Self.answer(["Content-Type: application/json"], Array(body.utf8))

        let note =
            "[repaired: the app's result is damaged: /result/structuredContent/scale was NaN, which is not JSON, and is null]"
        #expect(result?["structuredContent"] == ["scale": .null, "a": 2])
        #expect(result?["content"] == [["type": "text", "text": .string(note)]])
        #expect(found == [.invalidSyntax, .duplicateNames])
    }

    @Test func `a result without content has the note in its metadata`() async throws {
        let body = #"{"jsonrpc":"2.0","id":1,"result":{"tools":[NaN]}}"#

        let (result, _) = try await Self.answer(["Content-Type: application/json"], Array(body.utf8))

        #expect(result?["tools"] == [.null])
        #expect(result?["_meta"]?["patchbay/repaired"]?.string?.contains("/result/tools/0 was NaN") == true)
    }

    @Test func `an invalid message of a batch is dropped`() async throws {
        let body = #"[{"id":1},7,\#(Self.message)]"#

        #expect(try await Self.answer(["Content-Type: application/json"], Array(body.utf8)).0 == ["x": 1])
    }
}
