import Model

/// The `initialize` request to an OpenAgents server, and the check of the answer. Has no I/O.
///
/// OpenAgents uses the methods of the Agent Client Protocol over WebSocket, with snake_case members.
struct OpenAgentsHandshake {
    /// The next action after a frame.
    enum Step: Hashable {
        case wait
        /// Send a pong with this data.
        case pong([UInt8])
        case finished(ServerIdentity)
    }

    /// The maximum size in bytes of all frames up to the answer.
    static let byteLimit = 64 * 1_024

    private static let id = "1"
    /// The protocol version of the request. A server answers with a version of the same series.
    private static let version = "0.2.2"
    private static let series = "0.2"

    static let request = """
        {"jsonrpc":"2.0","id":"\(id)","method":"initialize","params":{"protocol_version":"\(version)",\
        "client_capabilities":{},"client_info":{"name":"patchbay","version":"\(Version.text)"}}}
        """

    private var byteCount = 0
    /// The fragments of the current message; nil between two messages.
    private var message: [UInt8]?

    /// Processes a frame of the server.
    ///
    /// - Throws: `ExchangeError.invalid`, `.tooLarge`.
    mutating func receive(_ frame: WebSocketFrame) throws(ExchangeError) -> Step {
        guard !frame.isMasked else { throw .invalid("it masks its frames, which only a client may do") }
        guard frame.reserved == 0 else { throw .invalid("it uses an extension that was not offered") }
        byteCount += frame.payload.count
        guard byteCount <= Self.byteLimit else { throw .tooLarge(limit: Self.byteLimit) }
        switch frame.opcode {
        case .ping: return .pong(frame.payload)
        case .pong: return .wait
        case .text: return try append(frame, isFirst: true)
        case .continuation: return try append(frame, isFirst: false)
        case .close: throw .invalid("it closed the connection before its answer")
        case .binary: throw .invalid("its answer is not a text message")
        case nil: throw .invalid("it sent a frame of an unknown type")
        }
    }

    private mutating func append(_ frame: WebSocketFrame, isFirst: Bool) throws(ExchangeError) -> Step {
        guard isFirst == (message == nil) else { throw .invalid("its message has fragments in a wrong order") }
        let whole = (message ?? []) + frame.payload
        message = frame.isFinal ? nil : whole
        return frame.isFinal ? try step(after: whole) : .wait
    }

    private func step(after bytes: [UInt8]) throws(ExchangeError) -> Step {
        guard let message = try? JSON(parsing: bytes), message.object != nil, message["jsonrpc"] == "2.0" else {
            throw .invalid("its message is not a JSON-RPC 2.0 object")
        }
        if message["method"] != nil {
            guard message["id"] == nil else { throw .invalid("it sent a request before its answer") }
            return .wait
        }
        guard message["id"] == .string(Self.id) else { throw .invalid("its answer has another id") }
        return .finished(try identity(in: message))
    }

    private func identity(in answer: JSON) throws(ExchangeError) -> ServerIdentity {
        if let error = answer["error"] {
            let reason = error["message"]?.string.map { SanitizedText($0).text } ?? "no reason"
            throw .invalid("it refused initialize: \(reason)")
        }
        guard let result = answer["result"], result.object != nil else {
            throw .invalid("its answer has no result")
        }
        guard let version = result["protocol_version"]?.string else {
            throw .invalid("its answer has no protocol_version")
        }
        guard version == Self.series || version.hasPrefix("\(Self.series).") else {
            throw .invalid("it speaks protocol version \(SanitizedText(version)) instead of \(Self.series)")
        }
        guard result["agent_capabilities"]?.object != nil else {
            throw .invalid("its answer has no agent_capabilities")
        }
        let info = result["agent_info"]
        return ServerIdentity(
            kind: .openagents,
            name: info?["name"]?.string.map { SanitizedText($0) },
            version: info?["version"]?.string.map { SanitizedText($0) }
        )
    }
}
