package import Model

/// The error object of a JSON-RPC response.
package struct RPCError: Error, Hashable, Sendable {
    package let code: Int
    package let message: String
    package let data: JSON?

    package init(_ code: Int, _ message: String, data: JSON? = nil) {
        self.code = code
        self.message = message
        self.data = data
    }

    /// Returns the complete error response to the request with that ID.
    ///
    /// Without a readable ID the response has no `id` member. JSON-RPC 2.0 asks for null there, which no MCP schema
    /// accepts.
    package func response(to id: RPCID?) -> JSON {
        var error: JSONObject = ["code": .number(JSONNumber(code)), "message": .string(message)]
        error["data"] = data
        var response: JSONObject = ["jsonrpc": "2.0"]
        response["id"] = id?.json
        response["error"] = .object(error)
        return .object(response)
    }
}

extension RPCError {
    /// Invalid JSON (JSON-RPC 2.0, section 5.1).
    package static func parseError(_ message: String) -> RPCError { RPCError(-32_700, message) }
    package static func invalidRequest(_ message: String) -> RPCError { RPCError(-32_600, message) }
    package static func methodNotFound(_ method: String) -> RPCError {
        RPCError(-32_601, "there is no method \(method)")
    }
    package static func invalidParams(_ message: String) -> RPCError { RPCError(-32_602, message) }
    package static func internalError(_ message: String) -> RPCError { RPCError(-32_603, message) }
    /// Resource not found (MCP 2025-11-25, resources). From 2026-07-28 on the code is `invalidParams`.
    package static func resourceNotFound(_ uri: String, suggestion: String? = nil) -> RPCError {
        let end = suggestion ?? ": resources/list lists those there are"
        return RPCError(-32_002, "there is no resource with this URI\(end)", data: ["uri": .string(uri)])
    }
    /// A header that contradicts the body (MCP 2026-07-28).
    package static func headerMismatch(_ message: String) -> RPCError { RPCError(-32_020, message) }
    /// A protocol version that this broker does not support (MCP 2026-07-28).
    package static func unsupportedProtocolVersion(_ requested: String) -> RPCError {
        RPCError(
            -32_022,
            "unsupported protocol version",
            data: [
                "supported": .array(ProtocolVersion.allCases.map { .string($0.rawValue) }),
                "requested": .string(requested),
            ]
        )
    }
}
