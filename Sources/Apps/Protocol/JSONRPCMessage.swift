package import Model

/// A JSON-RPC 2.0 message.
package enum RPCMessage: Hashable, Sendable {
    case request(RPCRequest)
    case notification(RPCNotification)
    /// A response. Its ID is nil for an error about a request without a readable ID (JSON-RPC 2.0, section 5).
    case response(id: RPCID?, Result<JSON, RPCError>)

    /// Parses a message.
    ///
    /// - Throws: The error to respond with.
    package init(_ json: JSON) throws(RPCError) {
        guard let object = json.object else { throw .invalidRequest("a message must be an object") }
        guard object["jsonrpc"] == "2.0" else { throw .invalidRequest("a message must have \"jsonrpc\": \"2.0\"") }
        if let method = object["method"] {
            guard let method = method.string else { throw .invalidRequest("a method must be a string") }
            self = try Self.call(method, object)
        } else if object["result"] != nil || object["error"] != nil {
            let (id, outcome) = (object["id"] ?? .null, Self.outcome(object))
            let rpcID = RPCID(id)
            if rpcID == nil {
                guard id.isNull, case .failure = outcome else {
                    throw .invalidRequest("a response must have the id of its request")
                }
            }
            self = .response(id: rpcID, outcome)
        } else {
            throw .invalidRequest("a message must have a method, a result or an error")
        }
    }

    private static func call(_ method: String, _ object: JSONObject) throws(RPCError) -> RPCMessage {
        // Some clients serialise absent parameters as null.
        guard object["params"].map({ $0.object != nil || $0.isNull }) ?? true else {
            throw .invalidRequest("params must be an object")
        }
        let params = object["params"]?.object
        guard let id = object["id"] else { return .notification(RPCNotification(method: method, params: params)) }
        guard let id = RPCID(id) else {
            throw .invalidRequest("an id must be a number or a string without unpaired surrogates")
        }
        return .request(RPCRequest(id: id, method: method, params: params))
    }

    private static func outcome(_ object: JSONObject) -> Result<JSON, RPCError> {
        // JSON-RPC 1 has both members, one of them null.
        guard let error = object["error"], !error.isNull || object["result"] == nil else {
            return .success(object["result"] ?? .null)
        }
        // Some servers send a text in place of the error object.
        let message = error["message"]?.string ?? error.string ?? ""
        return .failure(
            RPCError(
                error["code"]?.int ?? -32_603,
                message.isEmpty ? "the server gave no reason" : message,
                data: error["data"]
            )
        )
    }

    package var json: JSON {
        switch self {
        case .request(let request):
            .object(Self.object(request.method, request.params, id: request.id))
        case .notification(let notification):
            .object(Self.object(notification.method, notification.params, id: nil))
        case .response(let id, .success(let result)):
            ["jsonrpc": "2.0", "id": id?.json ?? .null, "result": result]
        case .response(let id, .failure(let error)):
            error.response(to: id)
        }
    }

    static func object(_ method: String, _ params: JSONObject?, id: RPCID?) -> JSONObject {
        var object: JSONObject = ["jsonrpc": "2.0"]
        object["id"] = id?.json
        object["method"] = .string(method)
        object["params"] = params.map { .object($0) }
        return object
    }
}

/// A JSON-RPC request, which expects a response.
package struct RPCRequest: Hashable, Sendable {
    package let id: RPCID
    package let method: String
    package let params: JSONObject?

    package init(id: RPCID, method: String, params: JSONObject? = nil) {
        self.id = id
        self.method = method
        self.params = params
    }
}

/// A JSON-RPC notification, which has no response.
package struct RPCNotification: Hashable, Sendable {
    package let method: String
    package let params: JSONObject?

    package init(method: String, params: JSONObject? = nil) {
        self.method = method
        self.params = params
    }
}

/// The ID that links a response to its request: a string or a number. MCP does not allow null.
package enum RPCID: Hashable, Sendable {
    case text(String)
    case number(JSONNumber)

    /// Returns nil if the value is neither a string nor a number.
    ///
    /// Also returns nil for a string with an unpaired surrogate. The parser has replaced that by U+FFFD, so the
    /// client would get a different ID back.
    package init?(_ json: JSON) {
        switch json {
        case .string(let text) where text.unicodeScalars.contains("\u{FFFD}"): return nil
        case .string(let text): self = .text(text)
        case .number(let number): self = .number(number)
        default: return nil
        }
    }

    package var json: JSON {
        switch self {
        case .text(let text): .string(text)
        case .number(let number): .number(number)
        }
    }
}

/// Messages in an event stream. MCP sends one message per event.
extension SSEEncoder {
    package static func message(_ json: JSON) -> [UInt8] { event("message", data: json.bytes) }

    /// The reconnect delay for clients: 500 ms after the stream ends.
    package static let retry = reconnectDelay(milliseconds: 500)
}
