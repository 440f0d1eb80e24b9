import Model
import Testing

@testable import Apps

@Suite struct OpenAgentsHandshakeTests {
    private static let answer = """
        {"jsonrpc":"2.0","id":"1","result":{"protocol_version":"0.2.2","agent_capabilities":{},\
        "auth_methods":[],"agent_info":{"name":"openagents-mac","title":"OpenAgents macOS","version":"0.1.0"}}}
        """

    private func frame(_ text: String, _ opcode: WebSocketFrame.Opcode = .text, fin: Bool = true) -> WebSocketFrame {
        WebSocketFrame(isFinal: fin, opcode: opcode, payload: Array(text.utf8))
    }

    /// Returns the reason for the rejection of one frame; nil if the frame is accepted.
    private func refusal(of frame: WebSocketFrame) -> String? {
        var handshake = OpenAgentsHandshake()
        do {
            _ = try handshake.receive(frame)
            return nil
        } catch .invalid(let reason) {
            return reason
        } catch { return "\(error)" }
    }

    @Test func `the request is JSON-RPC with snake_case members`() {
        #expect(
            OpenAgentsHandshake.request == """
                {"jsonrpc":"2.0","id":"1","method":"initialize","params":{"protocol_version":"0.2.2",\
                "client_capabilities":{},"client_info":{"name":"patchbay","version":"\(Version.text)"}}}
                """
        )
    }

    @Test func `the answer gives name and version`() throws {
        var handshake = OpenAgentsHandshake()

        let step = try handshake.receive(frame(Self.answer))

        let identity = ServerIdentity(
            kind: .openagents,
            name: SanitizedText("openagents-mac"),
            version: SanitizedText("0.1.0")
        )
        #expect(step == .finished(identity))
    }

    @Test func `the answer may have fragments, and pings and notifications before it`() throws {
        var handshake = OpenAgentsHandshake()
        let half = Self.answer.utf8.count / 2
        let (first, last) = (String(Self.answer.prefix(half)), String(Self.answer.dropFirst(half)))

        #expect(try handshake.receive(frame(#"{"jsonrpc":"2.0","method":"session/update","params":{}}"#)) == .wait)
        #expect(try handshake.receive(frame(first, fin: false)) == .wait)
        #expect(try handshake.receive(frame("abc", .ping)) == .pong(Array("abc".utf8)))
        guard case .finished = try handshake.receive(frame(last, .continuation)) else {
            Issue.record("the last fragment completes the answer")
            return
        }
    }

    @Test(
        arguments: [
            ("{", "is not a JSON-RPC"), ("[]", "is not a JSON-RPC"), ("\u{FFFD}", "is not a JSON-RPC"),
            (#"{"id":"1","result":{}}"#, "is not a JSON-RPC"),
            (#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "another id"),
            (#"{"jsonrpc":"2.0","result":{}}"#, "another id"),
            (#"{"jsonrpc":"2.0","id":"9","method":"fs/read_text_file"}"#, "sent a request"),
            (
                #"{"jsonrpc":"2.0","id":"1","error":{"code":-1,"message":"no\u001b[31m"}}"#,
                "refused initialize: no\u{FFFD}[31m"
            ),
            (#"{"jsonrpc":"2.0","id":"1"}"#, "has no result"),
            (#"{"jsonrpc":"2.0","id":"1","result":{"protocolVersion":"0.2.2"}}"#, "no protocol_version"),
            (
                #"{"jsonrpc":"2.0","id":"1","result":{"protocol_version":"0.20","agent_capabilities":{}}}"#,
                "version 0.20"
            ),
            (#"{"jsonrpc":"2.0","id":"1","result":{"protocol_version":"0.2.9"}}"#, "no agent_capabilities"),
        ]
    )
    func `a wrong message is rejected with its reason`(text: String, reason: String) {
        #expect(refusal(of: frame(text))?.contains(reason) == true, "\(refusal(of: frame(text)) ?? "accepted")")
    }

    @Test func `a frame that violates RFC 6455 is rejected`() {
        var masked = frame(Self.answer)
        masked.isMasked = true
        var reserved = frame(Self.answer)
        reserved.reserved = 4

        #expect(refusal(of: masked)?.contains("masks") == true)
        #expect(refusal(of: reserved)?.contains("extension") == true)
        #expect(refusal(of: frame("x", .continuation))?.contains("wrong order") == true)
        #expect(refusal(of: frame(Self.answer, .binary))?.contains("text message") == true)
        #expect(refusal(of: frame("", .close))?.contains("closed") == true)
    }

    @Test func `a new message inside a message is rejected`() throws {
        var handshake = OpenAgentsHandshake()
        #expect(try handshake.receive(frame("{", fin: false)) == .wait)

        #expect(throws: ExchangeError.self) { try handshake.receive(frame("}")) }
    }

    @Test func `more than 64 KiB before the answer is rejected`() throws {
        var handshake = OpenAgentsHandshake()
        let part = String(repeating: " ", count: 32 * 1_024)
        #expect(try handshake.receive(frame(part, fin: false)) == .wait)
        #expect(try handshake.receive(frame(part, .continuation, fin: false)) == .wait)

        #expect(throws: ExchangeError.tooLarge(limit: 64 * 1_024)) { try handshake.receive(frame("x", .continuation)) }
    }
}
