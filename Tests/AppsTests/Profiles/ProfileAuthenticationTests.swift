import Apps
import Model
import Testing

/// The exchange of DebugBridge's boot token, and the sessions of DebugBridge and WebDriverAgent.
@Suite struct ProfileAuthenticationTests {
    private static let newToken = ExchangeToken("new-token-0123456789")
    private static let acquired = AppResponse.json(#"{"session_id":"S-1","ttl_seconds":300}"#)
    private static let lost = AppResponse.json(#"{"error":"session_invalid_or_expired"}"#, status: 409)

    private let profile: Profile
    private let tap: ProfileTool
    private var authentication: ProfileAuthentication

    init() throws {
        profile = try ShippedProfile.load("debugbridge")
        tap = try profile.tool(named: "tap")
        authentication = ProfileAuthentication(profile, newToken: Self.newToken)
    }

    /// Returns the next request as text, and fails on any other step.
    private mutating func request(_ tool: ProfileTool?) -> String {
        guard case .send(let request) = authentication.nextStep(for: tool, hasSecret: true) else { return "none" }
        return request.text(secret: "BOOT")
    }

    private mutating func exchange() {
        _ = authentication.nextStep(for: nil, hasSecret: true)
        _ = authentication.receive(.json(#"{"ok":true}"#), at: .zero)
        _ = authentication.nextStep(for: nil, hasSecret: true)
    }

    private mutating func acquire(at now: Duration) {
        _ = authentication.nextStep(for: tap, hasSecret: true)
        _ = authentication.receive(Self.acquired, at: now)
    }

    @Test mutating func `the boot token is exchanged once, and the new token is stored`() {
        #expect(authentication.nextStep(for: nil, hasSecret: false) == .failed(.secretRequired))
        let request = request(nil)
        #expect(request.hasPrefix("POST /auth/rotate HTTP/1.1\r\n"))
        #expect(request.contains("\r\nAuthorization: Bearer BOOT\r\n"))
        #expect(request.hasSuffix("\r\n\r\n{\"new_token\":\"new-token-0123456789\"}"))

        #expect(authentication.receive(.json(#"{"ok":true}"#), at: .zero) == nil)
        #expect(authentication.nextStep(for: nil, hasSecret: true) == .store(Self.newToken))
        #expect(authentication.nextStep(for: nil, hasSecret: true) == .ready)
    }

    @Test mutating func `a token that was exchanged earlier is used as it is`() throws {
        _ = authentication.nextStep(for: nil, hasSecret: true)
        #expect(authentication.receive(.json(#"{"error":"boot_token_invalid"}"#, status: 401), at: .zero) == nil)
        #expect(authentication.nextStep(for: nil, hasSecret: true) == .ready)

        let elements = try profile.tool(named: "elements")
        let rejection = AppResponse.json(#"{"error":"unauthorized"}"#, status: 401)
        #expect(authentication.finish(rejection, of: elements, at: .zero) == .failed(.secretRejected))
        // The next secret may be a boot token again, because the app was restarted.
        #expect(request(nil).hasPrefix("POST /auth/rotate "))
    }

    @Test mutating func `the new token survives a lost response to the exchange`() {
        _ = authentication.nextStep(for: nil, hasSecret: true)
        authentication.responseLost()
        #expect(request(nil).hasPrefix("POST /auth/rotate "))
        #expect(authentication.receive(.json(#"{"error":"boot_token_invalid"}"#, status: 401), at: .zero) == nil)

        #expect(authentication.nextStep(for: nil, hasSecret: true) == .store(Self.newToken))
    }

    @Test mutating func `a tool that changes the app acquires a session and sends its header`() throws {
        exchange()
        #expect(authentication.nextStep(for: try profile.tool(named: "elements"), hasSecret: true) == .ready)
        #expect(request(tap).hasPrefix("POST /session/acquire HTTP/1.1\r\n"))
        #expect(authentication.receive(Self.acquired, at: .zero) == nil)
        #expect(authentication.nextStep(for: tap, hasSecret: true) == .ready)

        let call = try profile.request(for: tap, arguments: ["x": 1, "y": 2], with: authentication)
        #expect(call.text().contains("\r\nX-Session-Id: S-1\r\n"))
        let read = try profile.request(for: profile.tool(named: "elements"), arguments: [:], with: authentication)
        #expect(!read.text().contains("X-Session-Id"))
    }

    @Test mutating func `a session of another client is reported as busy`() {
        exchange()
        _ = authentication.nextStep(for: tap, hasSecret: true)

        #expect(authentication.receive(.json(#"{"error":"device_locked"}"#, status: 423), at: .zero) == .busy)
    }

    @Test mutating func `a lost session is acquired again, and the call is sent again`() {
        exchange()
        acquire(at: .zero)

        #expect(authentication.finish(Self.lost, of: tap, at: .zero) == .sendAgain)
        #expect(request(tap).hasPrefix("POST /session/acquire "))
    }

    @Test mutating func `a session is kept alive after its use and released when it is unused`() {
        exchange()
        #expect(authentication.nextMaintenance == nil)
        acquire(at: .seconds(10))
        #expect(authentication.nextMaintenance == .seconds(160))
        #expect(authentication.maintenance(at: .seconds(159)) == nil)
        let heartbeat = authentication.maintenance(at: .seconds(160))
        #expect(heartbeat?.text().contains("POST /session/heartbeat HTTP/1.1") == true)
        #expect(heartbeat?.text().contains("X-Session-Id: S-1") == true)

        #expect(authentication.nextMaintenance == .seconds(310))
        let release = authentication.maintenance(at: .seconds(310))
        #expect(release?.text().contains("POST /session/release HTTP/1.1") == true)
        #expect(release?.text().contains("X-Session-Id: S-1") == true)
        #expect(authentication.nextMaintenance == nil)
        #expect(authentication.release() == nil)
    }

    @Test(arguments: [#"{"session_id":"a\r\nHost: b"}"#, #"{"session_id":"../x"}"#, #"{"session_id":""}"#, "{}", "["])
    mutating func `a session that could change a request is refused`(body: String) {
        exchange()
        _ = authentication.nextStep(for: tap, hasSecret: true)

        #expect(authentication.receive(.json(body), at: .zero) == .unexpected("status 200 and no session"))
    }

    @Test func `an existing WebDriverAgent session is shared and not ended`() throws {
        let profile = try ShippedProfile.load("webdriveragent")
        let tool = try profile.tool(named: "window_size")
        var authentication = ProfileAuthentication(profile, newToken: Self.newToken)
        guard case .send(let lookup) = authentication.nextStep(for: tool, hasSecret: false) else {
            Issue.record("no lookup of the session")
            return
        }
        #expect(lookup.description == "GET /status")
        #expect(authentication.receive(.json(#"{"value":{},"sessionId":"7F2A"}"#), at: .zero) == nil)
        #expect(authentication.nextStep(for: tool, hasSecret: false) == .ready)

        let call = try profile.request(for: tool, arguments: [:], with: authentication)
        #expect(call.description == "GET /session/7F2A/window/size")
        #expect(!call.usesSecret)
        #expect(authentication.release() == nil)
    }

    @Test func `a WebDriverAgent session of Patchbay is created and ended`() throws {
        let profile = try ShippedProfile.load("webdriveragent")
        let tool = try profile.tool(named: "window_size")
        var authentication = ProfileAuthentication(profile, newToken: Self.newToken)
        _ = authentication.nextStep(for: tool, hasSecret: false)
        _ = authentication.receive(.json(#"{"value":{},"sessionId":null}"#), at: .zero)
        guard case .send(let create) = authentication.nextStep(for: tool, hasSecret: false) else {
            Issue.record("no new session")
            return
        }
        #expect(create.text().hasSuffix("\r\n\r\n{\"capabilities\":{\"alwaysMatch\":{}}}"))
        #expect(authentication.receive(.json(#"{"value":{"sessionId":"9B"}}"#), at: .zero) == nil)

        let missing = AppResponse.json(#"{"value":{"error":"no such element","message":"…"}}"#, status: 404)
        #expect(authentication.finish(missing, of: tool, at: .zero) == .deliver)
        #expect(authentication.release()?.description == "DELETE /session/9B")
    }
}
