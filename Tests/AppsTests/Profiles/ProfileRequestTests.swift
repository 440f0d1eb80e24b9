import Apps
import Model
import Testing

/// The bytes that calls send, and the calls that are refused.
@Suite struct ProfileRequestTests {
    private static func request(_ profile: String, _ tool: String, _ arguments: JSONObject = [:]) throws -> String {
        let profile = try ShippedProfile.load(profile)
        let authentication = ProfileAuthentication(profile, newToken: ExchangeToken("new-token-0123456789"))
        return try profile.request(for: profile.tool(named: tool), arguments: arguments, with: authentication)
            .text(secret: "SECRET")
    }

    private static func refusal(_ profile: String, _ tool: String, _ arguments: JSONObject) -> String {
        do { return try request(profile, tool, arguments) } catch { return "\(error)" }
    }

    private static func message(_ method: String, _ path: String, _ body: String?, secret: Bool = false) -> String {
        let count = body?.utf8.count ?? 0
        let length = method == "GET" ? "" : "Content-Length: \(count)\r\n"
        return "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1:9876\r\n"
            + (body == nil ? "" : "Content-Type: application/json\r\n")
            + "Accept: */*\r\nUser-Agent: patchbay/\(Version.text)\r\n"
            + (secret ? "Authorization: Bearer SECRET\r\n" : "") + "\(length)\r\n\(body ?? "")"
    }

    @Test(
        arguments: [
            ("screenshot", [:], "GET", "/screenshot", nil), ("list_actions", [:], "GET", "/actions", nil),
            ("activate", ["identifier": "login.submit"], "POST", "/activate", #"{"identifier":"login.submit"}"#),
            ("app_state", ["pointer": "/user", "max_bytes": 100], "GET", "/state", nil),
            ("record_start", [:], "POST", "/record/start", nil), ("record_stop", [:], "POST", "/record/stop", nil),
        ] as [(String, JSONObject, String, String, String?)]
    )
    func `a call of app-debug sends exactly the documented request`(
        tool: String,
        arguments: JSONObject,
        method: String,
        path: String,
        body: String?
    ) throws { #expect(try Self.request("app-debug", tool, arguments) == Self.message(method, path, body)) }

    @Test(
        arguments: [
            ("screenshot", [:], "GET", "/screenshot", nil), ("elements", [:], "GET", "/elements", nil),
            ("state_snapshot", [:], "GET", "/state/snapshot", nil),
            ("state_get", ["key": "cart total"], "GET", "/state/cart%20total", nil),
            ("state_set", ["key": "a", "value": ["1": "x"]], "POST", "/state/a", #"{"value":{"1":"x"}}"#),
            ("state_restore", ["snapshot": ["keys": [:]]], "POST", "/state/restore", #"{"keys":{}}"#),
            ("tap", ["x": 12, "y": 34], "POST", "/tap", #"{"x":12,"y":34}"#),
            ("type", ["text": "a\"\r\nb"], "POST", "/type", #"{"text":"a\"\r\nb"}"#),
            (
                "swipe", ["to_y": 4, "to_x": 3, "from_y": 2, "from_x": 1], "POST", "/swipe",
                #"{"from_x":1,"from_y":2,"to_x":3,"to_y":4}"#
            ),
        ] as [(String, JSONObject, String, String, String?)]
    )
    func `a call of DebugBridge sends exactly the documented request with the token`(
        tool: String,
        arguments: JSONObject,
        method: String,
        path: String,
        body: String?
    ) throws {
        #expect(try Self.request("debugbridge", tool, arguments) == Self.message(method, path, body, secret: true))
    }

    @Test func `a call of DeviceKit is a JSON-RPC request with the arguments and the defaults`() throws {
        let request = try Self.request("devicekit", "long_press", ["y": 2, "x": 1])

        #expect(
            request.hasSuffix(
                #"{"jsonrpc":"2.0","id":1,"method":"device.io.longpress","params":{"x":1,"y":2,"duration":1}}"#
            )
        )
        #expect(request.hasPrefix("POST /rpc HTTP/1.1\r\n"))
    }

    @Test func `a default fills the query, and the argument replaces it`() throws {
        #expect(try Self.request("webdriveragent", "source").hasPrefix("GET /source?format=xml HTTP/1.1"))
        #expect(
            try Self.request("webdriveragent", "source", ["format": "description"])
                .hasPrefix("GET /source?format=description HTTP/1.1")
        )
    }

    @Test(
        arguments: [
            ("app-debug", "activate", [:], #"activate was not called: "identifier" is missing"#),
            (
                "app-debug", "activate", ["identifier": 1],
                #"activate was not called: "identifier" must be a text, but is a number"#
            ),
            (
                "app-debug", "activate", ["identifer": "x", "identifier": "x"],
                #"activate was not called: "identifer" is not an argument; did you mean "identifier"?"#
            ),
            (
                "app-debug", "app_state", ["max_bytes": 0],
                #"app_state was not called: "max_bytes" is 0; it must be at least 1"#
            ),
            (
                "devicekit", "press_button", ["button": "power"],
                #"press_button was not called: "button" must be one of "home", "lock", "volumeUp", "volumeDown", "#
                    + #"but is "power""#
            ),
            ("devicekit", "swipe", ["x1": 1, "y1": 1, "x2": 1], #"swipe was not called: "y2" is missing"#),
            ("devicekit", "tap", ["x": 1, "y": 10001], #"tap was not called: "y" is 10001; it must be at most 10000"#),
        ] as [(String, String, JSONObject, String)]
    )
    func `invalid arguments are refused with the reason`(
        profile: String,
        tool: String,
        arguments: JSONObject,
        reason: String
    ) { #expect(Self.refusal(profile, tool, arguments) == reason) }

    @Test(arguments: [
        "../auth/rotate", "..", ".", "", "a/b", "//evil.example", "http://evil.example/", "a\r\nHost: evil.example",
        "a\\b",
        "%2e%2e", "a\u{0}", "a\u{7F}",
    ]) func `an argument in a path stays one segment`(key: String) {
        #expect(
            Self.refusal("debugbridge", "state_get", ["key": .string(key)])
                == "state_get was not called: \"key\" becomes one part of a path; it must not be empty, \".\" or \"..\", "
                + "nor contain /, \\, % or control characters"
        )
    }

    @Test(arguments: ["snapshot", "restore"]) func `an argument in a path cannot lead to another request`(key: String) {
        #expect(
            Self.refusal("debugbridge", "state_set", ["key": .string(key), "value": 1])
                == "state_set was not called: the path /state/\(key) belongs to another request of this server"
        )
    }

    @Test func `a large argument is refused`() {
        let text = JSON.string(String(repeating: "a", count: 2_000_000))

        #expect(
            Self.refusal("debugbridge", "state_restore", ["snapshot": ["keys": text]])
                == "state_restore was not called: the body would have 2000011 bytes; the limit is 1048576"
        )
        #expect(
            Self.refusal("app-debug", "activate", ["identifier": text])
                == "activate was not called: \"identifier\" has 2000000 characters; it must have at most 1024"
        )
    }

    @Test func `a request for consent waits longer than a minute`() throws {
        #expect(try ShippedProfile.load("app-debug").tool(named: "record_start").timeout > .seconds(60))
    }

    @Test(arguments: [
        ("tap", "there is no tool \"tap\": no coordinates: app-debug activates elements by identifier; use activate"),
        ("type", "there is no tool \"type\": no typing and no gestures"),
        ("activat", "there is no tool \"activat\": app-debug does not have it; did you mean \"activate\"?"),
        (
            "zzz",
            "there is no tool \"zzz\": app-debug does not have it; the tools are screenshot, list_actions, activate, "
                + "app_state, record_start, record_stop"
        ),
    ]) func `a missing tool is refused with the reason and the nearest tool`(name: String, reason: String) throws {
        let profile = try ShippedProfile.load("app-debug")

        #expect { _ = try profile.tool(named: name) } throws: { "\($0)" == reason }
    }

    @Test func `a tool is listed with its schema and its marks`() throws {
        let profile = try ShippedProfile.load("app-debug")

        #expect(
            try profile.tool(named: "activate").json.text == """
                {"name":"activate","description":"Activates the element with an identifier of list_actions.",\
                "inputSchema":{"type":"object","properties":{"identifier":{"type":"string",\
                "description":"An identifier of list_actions.","maxLength":1024}},"required":["identifier"],\
                "additionalProperties":false},"annotations":{"readOnlyHint":false,"idempotentHint":false}}
                """
        )
        #expect(profile.tools.filter(\.isReadOnly).map(\.name) == ["screenshot", "list_actions", "app_state"])
    }

    @Test func `a printed request shows no token`() throws {
        let profile = try ShippedProfile.load("debugbridge")
        var authentication = ProfileAuthentication(profile, newToken: ExchangeToken("new-token-0123456789"))
        let step = authentication.nextStep(for: nil, hasSecret: true)
        var dumped = ""
        dump(step, to: &dumped)

        #expect(!"\(step) \(dumped) \(ExchangeToken("abc"))".contains("new-token"))
        #expect("\(ExchangeToken("abc"))" == "(secret)")
    }
}
