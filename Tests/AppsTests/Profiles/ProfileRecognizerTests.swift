import Apps
import Model
import Testing

/// The recognition of the shipped profiles, with the responses of the real servers and of others.
@Suite struct ProfileRecognizerTests {
    private static let health = """
        {"version":"1.0.0","build":"42","accessor_hash":"9f2c","bundle_id":"com.example.shop"}
        """
    private static let status = """
        {"value":{"message":"WebDriverAgent is ready to accept commands","state":"success","os":{"testmanagerdVersion":28,\
        "name":"iOS","sdkVersion":"17.0","version":"17.1"},"ios":{"ip":"192.168.1.20"},"ready":true,"build":{"time":\
        "Nov 20 2026 10:00:00","productBundleIdentifier":"com.facebook.WebDriverAgentRunner","version":"9.1.0"}},\
        "sessionId":"7F2A"}
        """

    /// Recognises a server that answers the requests with these responses; nil is a closed connection.
    private static func outcome(_ name: String, _ responses: [AppResponse?]) throws -> ProfileRecognizer {
        var recognizer = ProfileRecognizer(try ShippedProfile.load(name))
        for response in responses {
            #expect(recognizer.nextRequest != nil)
            if let response { recognizer.receive(response) } else { recognizer.fail() }
        }
        return recognizer
    }

    @Test func `an app-debug server is recognised by its actions and by the path that it does not have`() throws {
        let profile = try ShippedProfile.load("app-debug")
        var recognizer = ProfileRecognizer(profile)

        #expect(
            recognizer.nextRequest?.text() == """
                GET /actions HTTP/1.1\r
                Host: 127.0.0.1:9876\r
                Accept: */*\r
                User-Agent: patchbay/\(Version.text)\r
                \r

                """
        )
        recognizer.receive(.json(#"["login.submit","tab.settings"]"#))
        #expect(recognizer.nextRequest?.description == "GET /patchbay-recognition")
        recognizer.receive(.json("", status: 404))

        #expect(recognizer.outcome == .match(ServerIdentity(kind: .appDebug)))
        #expect(recognizer.nextRequest == nil)
    }

    @Test(
        arguments: [
            ([.json(#"{"status":"ok"}"#)], "other JSON: the value must be a list, but is an object to GET /actions"),
            ([.json(#"["a",1]"#)], #"other JSON: "[1]" must be a text, but is a number to GET /actions"#),
            ([.json("[", status: 200)], "something that is not JSON to GET /actions"),
            ([.json("[]", status: 404)], "status 404 instead of 200 to GET /actions"),
            ([.json("[]"), .json("[]")], "status 200, as to other requests to GET /patchbay-recognition"),
            ([nil], "no response to GET /actions"),
        ] as [([AppResponse?], String)]
    )
    func `a server that is not app-debug is rejected with the reason`(
        responses: [AppResponse?],
        reason: String
    ) throws { #expect(try Self.outcome("app-debug", responses).outcome == .mismatch(reason)) }

    @Test func `a server that closes the connection for an unknown path can be app-debug`() throws {
        let recognizer = try Self.outcome("app-debug", [.json("[]"), nil])

        guard case .match = recognizer.outcome else {
            Issue.record("\(recognizer.outcome)")
            return
        }
        #expect(recognizer.steps.map(\.mismatch) == [nil, nil])
    }

    @Test func `a DebugBridge server reports its app and its build`() throws {
        let recognizer = try Self.outcome(
            "debugbridge",
            [.json(Self.health), .json(#"{"error":"unauthorized"}"#, status: 401)]
        )

        #expect(
            recognizer.outcome
                == .match(
                    ServerIdentity(
                        kind: EndpointKind("debugbridge"),
                        app: SanitizedText("com.example.shop"),
                        version: SanitizedText("42"),
                        wantsToken: true
                    )
                )
        )
    }

    @Test func `a WebDriverAgent is told apart from an Appium server`() throws {
        let agent = try Self.outcome("webdriveragent", [.json(Self.status)]).outcome
        let appium = try Self.outcome(
            "webdriveragent",
            [.json(#"{"value":{"ready":true,"message":"ready","build":{"version":"2.5.4"}}}"#)]
        ).outcome

        guard case .match(let server) = agent else {
            Issue.record("\(agent)")
            return
        }
        #expect(server.version == SanitizedText("9.1.0"))
        #expect(appium == .mismatch(#"other JSON: "value.os" is missing to GET /status"#))
    }

    @Test func `a DeviceKit server is recognised by its JSON-RPC response`() throws {
        var recognizer = ProfileRecognizer(try ShippedProfile.load("devicekit"))

        #expect(
            recognizer.nextRequest?.text().hasSuffix(
                "\r\nContent-Length: 59\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"device.info\",\"params\":{}}"
            ) == true
        )
        recognizer.receive(
            .json(#"{"jsonrpc":"2.0","result":{"screenSize":{"width":393,"height":852},"scale":3},"id":1}"#)
        )
        recognizer.receive(.json("", status: 404))
        guard case .match = recognizer.outcome else {
            Issue.record("\(recognizer.outcome)")
            return
        }
    }

    @Test(arguments: ShippedProfile.names)
    func `a server that answers everything with the same JSON is of no kind`(name: String) throws {
        for body in [#"{"status":"ok"}"#, "[]", "{}", "1", Self.health, Self.status] {
            var recognizer = ProfileRecognizer(try ShippedProfile.load(name))
            while recognizer.nextRequest != nil { recognizer.receive(.json(body)) }

            let isOwn = name == "webdriveragent" && body == Self.status
            if case .match = recognizer.outcome, !isOwn { Issue.record("\(name) matches \(body)") }
        }
    }

    @Test func `a probe carries no secret and an identity has no control characters`() throws {
        var recognizer = ProfileRecognizer(try ShippedProfile.load("debugbridge"))

        #expect(recognizer.nextRequest?.text(secret: "boot").contains("boot") == false)
        recognizer.receive(.json(Self.health.replacing("com.example", with: #"\u001b[31m"#)))
        recognizer.receive(.json(#"{"error":"unauthorized"}"#, status: 401))
        guard case .match(let server) = recognizer.outcome else {
            Issue.record("\(recognizer.outcome)")
            return
        }
        #expect(server.app?.text == "\u{FFFD}[31m.shop")
    }
}
