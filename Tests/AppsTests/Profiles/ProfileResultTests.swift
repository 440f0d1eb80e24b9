@testable import Apps
import FoundationEssentials
import Model
import Testing

/// The results of calls, from the responses that the servers are documented to send.
@Suite struct ProfileResultTests {
    private static let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 1, 2, 3]
    private static let mp4: [UInt8] = [0, 0, 0, 24] + Array("ftypmp42".utf8) + [0, 0, 0, 0]

    private static func result(
        _ profile: String,
        _ tool: String,
        _ response: AppResponse,
        _ arguments: JSONObject = [:]
    ) throws -> String {
        let profile = try ShippedProfile.load(profile)
        var repairs = JSONRepairs()
        return try profile.result(
            of: profile.tool(named: tool),
            arguments: arguments,
            response: response,
            repairs: &repairs
        ).text
    }

    private static func error(_ profile: String, _ tool: String, _ response: AppResponse) -> String {
        do { return try result(profile, tool, response) } catch { return "\(error)" }
    }

    private static func bytes(_ body: [UInt8]) -> AppResponse { AppResponse(status: 200, contentType: nil, body: body) }

    @Test func `each tool of app-debug returns the documented response`() throws {
        let base64 = Data(Self.png).base64EncodedString()

        #expect(
            try Self.result("app-debug", "screenshot", Self.bytes(Self.png))
                == #"{"content":[{"type":"image","data":"\#(base64)","mimeType":"image/png"}]}"#
        )
        #expect(
            try Self.result("app-debug", "list_actions", .json(#"["a", "b"]"#))
                == #"{"content":[{"type":"text","text":"[\"a\",\"b\"]"}]}"#
        )
        for tool in ["activate", "record_start"] {
            #expect(
                try Self.result("app-debug", tool, .json(#"{"ok": true}"#))
                    == #"{"content":[{"type":"text","text":"{\"ok\":true}"}],"structuredContent":{"ok":true}}"#
            )
        }
        #expect(try Self.result("app-debug", "record_stop", Self.bytes(Self.mp4)) == "video of 16 bytes")
    }

    @Test func `a picture of DebugBridge and of DeviceKit is an image block`() throws {
        let base64 = Data(Self.png).base64EncodedString()
        let expected = #"{"content":[{"type":"image","data":"\#(base64)","mimeType":"image/png"}]}"#

        #expect(try Self.result("debugbridge", "screenshot", .json(#"{"png_base64":"\#(base64)"}"#)) == expected)
        #expect(
            try Self.result(
                "devicekit",
                "screenshot",
                .json(#"{"jsonrpc":"2.0","id":1,"result":{"format":"png","data":"data:image/png;base64,\#(base64)"}}"#)
            ) == expected
        )
        let lines = base64.prefix(8) + #"\r\n"# + base64.dropFirst(8)
        #expect(try Self.result("webdriveragent", "screenshot", .json(#"{"value":"\#(lines)"}"#)) == expected)
    }

    @Test func `a picture that is no PNG or JPEG keeps its type`() throws {
        let svg = Data("<svg/>".utf8).base64EncodedString()

        #expect(
            try Self.result("debugbridge", "screenshot", .json(#"{"png_base64":"data:image/png;base64,\#(svg)"}"#))
                == #"{"content":[{"type":"image","data":"\#(svg)","mimeType":"image/svg+xml"}]}"#
        )
    }

    @Test func `a part of the state is selected by a pointer`() throws {
        let state = AppResponse.json(#"{"user":{"name":"Ada","tags":["x"]},"cart":[]}"#)

        #expect(
            try Self.result("app-debug", "app_state", state, ["pointer": "/user/name"])
                == #"{"content":[{"type":"text","text":"\"Ada\""}]}"#
        )
        #expect(
            try Self.result("app-debug", "app_state", state, ["pointer": "/user"])
                == #"{"content":[{"type":"text","text":"{\"name\":\"Ada\",\"tags\":[\"x\"]}"}],"#
                + #""structuredContent":{"name":"Ada","tags":["x"]}}"#
        )
        #expect(
            try Self.result("app-debug", "app_state", state, ["pointer": "/x"])
                == #"{"content":[{"type":"text","text":"there is no value at \"/x\".\n/user: an object (27 B)\n"#
                + #"/cart: a list (2 B)"}],"isError":true}"#
        )
        #expect(
            try Self.result("app-debug", "app_state", state, ["pointer": "user"])
                == #"{"content":[{"type":"text","text":"\"user\" is not a JSON pointer; write it like \"/user/name\""}],"#
                + #""isError":true}"#
        )
    }

    @Test func `a state over the limit becomes an outline with pointers`() throws {
        let large = String(repeating: "a", count: 5_000)
        let state = AppResponse.json(#"{"log":"\#(large)","a/b":1}"#)

        #expect(
            try Self.result("app-debug", "app_state", state)
                == #"{"content":[{"type":"text","text":"[5018 bytes; the limit is 4096; give one of these as pointer, "#
                + #"or raise max_bytes]\n/log: a text (5002 B)\n/a~1b: a number (1 B)"}]}"#
        )
        #expect(try Self.result("app-debug", "app_state", state, ["max_bytes": 6_000]).contains(large))
        #expect(try Self.result("app-debug", "app_state", state, ["pointer": "/a~1b"]).contains(#""text":"1""#))
    }

    @Test func `the outline of many members is short`() throws {
        let members = (0..<5_000).map { "\"k\($0)\":1" }.joined(separator: ",")
        let text = try Self.result("app-debug", "app_state", .json("{\(members)}"))

        #expect(text.utf8.count < 2_000)
        #expect(text.contains("… and 4950 more"))
    }

    @Test(arguments: [
        ("app-debug", "screenshot", #"{"status":"ok"}"#, "it answers with 15 bytes that are no image"),
        ("app-debug", "record_stop", #"{"ok":true}"#, "it answers with 11 bytes that are no MP4 file"),
        ("app-debug", "list_actions", "[", "it answers with invalid JSON (unexpected end, at byte 1)"),
        ("debugbridge", "screenshot", "{}", "it answers with JSON without base64 at \"/png_base64\""),
        ("webdriveragent", "source", "{}", "it answers with JSON without a text at \"/value\""),
        ("webdriveragent", "status", "{}", "it answers with JSON without a value at \"/value\""),
        ("devicekit", "tap", "{}", "it answers with JSON-RPC without a result and without an error"),
    ]) func `a response that the profile does not describe is an error`(
        profile: String,
        tool: String,
        body: String,
        expected: String
    ) { #expect(Self.error(profile, tool, .json(body)) == expected) }

    @Test func `an error of the server is a result with its message`() throws {
        #expect(
            try Self.result("debugbridge", "state_get", .json(#"{"error":"unknown_key","key":"x"}"#, status: 404))
                == #"{"content":[{"type":"text","text":"HTTP status 404: unknown_key"}],"isError":true}"#
        )
        #expect(
            try Self.result("app-debug", "activate", .json("no\u{1B}[31m such action", status: 500))
                == #"{"content":[{"type":"text","text":"HTTP status 500: no�[31m such action"}],"isError":true}"#
        )
        #expect(
            try Self.result(
                "devicekit",
                "tap",
                .json(#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params"}}"#)
            ) == #"{"content":[{"type":"text","text":"error -32602: Invalid params"}],"isError":true}"#
        )
    }

    @Test func `the error message of a server is bounded`() throws {
        let text = try Self.result(
            "app-debug",
            "activate",
            .json(String(repeating: "x", count: 1_000_000), status: 500)
        )

        #expect(text.utf8.count < 1_200)
    }

    @Test func `a response with duplicate names has the last value, and one that does not end is an error`() throws {
        let deep = String(repeating: "[", count: 100_000)

        #expect(Self.error("app-debug", "list_actions", .json(deep)).hasPrefix("it answers with invalid JSON"))
        #expect(
            try Self.result("app-debug", "app_state", .json(#"{"a":1,"a":2}"#)).contains(
                #""structuredContent":{"a":2}"#
            )
        )
    }
}
