package import JSON

/// The error of a JSON-RPC answer, as it goes over the wire.
package struct RPCError: Error, Hashable, Sendable {
    package let code: Int
    package let message: String
    package let data: JSON?

    package init(_ code: Int, _ message: String, data: JSON? = nil) {
        self.code = code
        self.message = message
        self.data = data
    }

    /// The whole answer to a request with that id; nil where the id could not be read.
    ///
    /// Then there is none in it: JSON-RPC 2.0 wants null there, which no schema of MCP takes.
    package func answer(to id: RPCID?) -> JSON {
        var error: JSONObject = ["code": .number(JSONNumber(code)), "message": .string(message)]
        error["data"] = data
        var answer: JSONObject = ["jsonrpc": "2.0"]
        answer["id"] = id?.json
        answer["error"] = .object(error)
        return .object(answer)
    }
}

extension RPCError {
    /// JSON-RPC 2.0, section 5.1.
    package static func parse(_ message: String) -> RPCError { RPCError(-32_700, message) }
    package static func invalidRequest(_ message: String) -> RPCError { RPCError(-32_600, message) }
    package static func unknownMethod(_ method: String) -> RPCError {
        RPCError(-32_601, "there is no method \(method)")
    }
    package static func invalidParams(_ message: String) -> RPCError { RPCError(-32_602, message) }
    package static func inside(_ message: String) -> RPCError { RPCError(-32_603, message) }
    /// MCP 2025-11-25, resources: resource not found. From 2026-07-28 on it is `invalidParams`.
    package static func unknownResource(_ uri: String) -> RPCError {
        RPCError(-32_002, "there is no resource of this address", data: ["uri": .string(uri)])
    }
    /// MCP 2026-07-28: a header contradicts the body.
    package static func mismatch(_ message: String) -> RPCError { RPCError(-32_020, message) }
    /// MCP 2026-07-28: a revision that is not spoken here.
    package static func revision(_ requested: String) -> RPCError {
        RPCError(
            -32_022,
            "this revision of MCP is not spoken here",
            data: [
                "supported": .array(ProtocolVersion.allCases.map { .string($0.rawValue) }),
                "requested": .string(requested),
            ]
        )
    }
}
