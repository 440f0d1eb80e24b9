import Model
import TestSupport
import Testing

/// Trace contexts of clients, and what a sample app receives of them (W3C Trace Context).
@Suite(.needs(.python), .timeLimit(.minutes(3)), .scratchFolder) struct TraceTests {
    private let scratch = ScratchFolder.current
    private static let (header, meta) = (parent("a"), parent("b"))

    private static func parent(_ digit: String) -> String {
        "00-\(String(repeating: digit, count: 32))-\(String(repeating: digit, count: 16))-01"
    }

    /// Posts a document and returns the response. A request to an MCP server has both contexts.
    private func post(
        _ body: JSON,
        to path: String,
        of broker: RunningBroker,
        trace: [String] = ["traceparent: \(header)", "tracestate: h=1"]
    ) async throws -> JSON {
        let headers = (["Content-Type: application/json"] + trace).flatMap { ["-H", $0] }
        let target = ["-sS", "--unix-socket", broker.socket, "http://localhost\(path)"]
        let program = try await Program(
            "curl",
            target + headers + ["-d", String(decoding: body.bytes, as: UTF8.self)],
            in: scratch
        )
        #expect(try await program.exitStatus() == .exited(0), "\(program.log)")
        return try JSON(parsing: program.output.joined())
    }

    private static func message(_ tool: String, _ arguments: JSON, traceparent: String? = meta) -> JSON {
        var params: JSONObject = ["name": .string(tool), "arguments": arguments]
        params["_meta"] = traceparent.map { ["traceparent": .string($0), "tracestate": "m=1"] }
        return ["jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": .object(params)]
    }

    @Test func `an app gets the trace context of each way to it, and the activity shows its ID`() async throws {
        let configuration = "[api]\ntcp = false\n[mcp]\nall = true\n"
        let broker = try await RunningBroker(in: scratch, configuration: configuration)
        let app = try await SampleApp(mode: .ios09, in: scratch)
        let added = try await broker.ask("add", "Shop", "127.0.0.1:\(app.port)", "--kind", "appreveal")
        let id = try #require(added.first?.split(separator: " ").last?.dropLast()).description
        let list: JSON = ["jsonrpc": "2.0", "id": 1, "method": "tools/list"]
        let listed = try await post(list, to: "/all/mcp", of: broker)["result"]?["tools"]?.array ?? []
        let tool = try #require(listed.compactMap { $0["name"]?.string }.first { $0.hasSuffix("__tap_element") })
        let arguments: JSON = ["element_id": "5"]

        let call: JSON = ["endpoint": .string(id), "name": "tap_element", "arguments": arguments]
        let plain: JSON = ["tool": "tap_element", "arguments": arguments]
        let answers = [
            try await post(Self.message("tap_element", arguments), to: "/e/\(id)/mcp", of: broker),
            try await post(Self.message(tool, arguments), to: "/all/mcp", of: broker),
            try await post(Self.message("endpoint_call", call), to: "/mcp", of: broker),
            try await post(plain, to: "/v1/endpoints/\(id)/call", of: broker),
        ]
        #expect(answers.allSatisfy { $0["error"] == nil && $0["result"]?["isError"] != true }, "\(answers)")
        // A malformed context, and none.
        let malformed = ["traceparent: \(Self.header.uppercased())", "tracestate: h=1"]
        _ = try await post(
            Self.message("tap_element", arguments, traceparent: "x"),
            to: "/e/\(id)/mcp",
            of: broker,
            trace: malformed
        )
        _ = try await broker.ask("call", id, "tap_element", "element_id=5")
        let environment = ["TRACEPARENT=\(Self.header)", "TRACESTATE=h=1"]
        let command = ["call", id, "tap_element", "element_id=5", "--socket", broker.socket]
        _ = try await Program.run("env", environment + [Executable.built("patchbay")] + command, in: scratch)

        let both = "trace: headers \(Self.header) h=1, _meta \(Self.meta) m=1"
        let one = "trace: headers \(Self.header) h=1, _meta None None"
        #expect(app.program.output.filter { $0.hasPrefix("trace: ") } == [both, both, both, one, one])
        #expect(app.program.output.count { $0 == "call: tap_element" } == 7)
        let shown = try await broker.ask("activity", "--json")
        let calls = try #require(ActivityPage(try JSON(parsing: shown.joined()))).entries.compactMap(\.call)
        let ids = [Self.meta, Self.meta, Self.meta, Self.header].map { String($0.dropFirst(3).prefix(32)) }
        #expect(calls.map(\.trace) == ids + [nil, nil, ids[3]])
        try await eventually("the audit log has the calls") {
            try await broker.ask("audit", "--json").count { $0.contains(#""trace":"\#(ids[0])""#) } == 3
        }
    }
}
