import JSON

/// What a server's bare result lacks in the era of whoever asked, and what that era does not know.
struct ResultAdapter: Sendable {
    /// Results that say how long they may be kept.
    private static let cacheable: Set<String> = [
        "server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read",
    ]
    /// What only 2026-07-28 knows.
    private static let modern = ["resultType", "ttlMs", "cacheScope"]

    let era: ProtocolMode
    let method: String

    /// The result as the era has it; `server` is who answers. Throws where the era has no words for it.
    func shape(_ result: JSONObject, server: JSONObject) throws(RPCError) -> JSONObject {
        switch era {
        case .stateless: stateless(result, server)
        case .handshake(let revision): try handshake(result, revision)
        }
    }

    func shape(_ error: RPCError) -> RPCError {
        // The code of its own for a resource that is not there is gone in 2026-07-28.
        guard era == .stateless, error.code == -32_002 else { return error }
        return RPCError(-32_602, error.message, data: error.data)
    }

    private func stateless(_ result: JSONObject, _ server: JSONObject) -> JSONObject {
        var result = result
        if result["resultType"] == nil { result["resultType"] = "complete" }
        if Self.cacheable.contains(method), result["resultType"] == "complete" {
            if result["ttlMs"] == nil { result["ttlMs"] = 0 }
            if result["cacheScope"] == nil { result["cacheScope"] = "private" }
        }
        var meta = result["_meta"]?.object ?? [:]
        if meta[RequestMeta.serverName] == nil { meta[RequestMeta.serverName] = .object(server) }
        result["_meta"] = .object(meta)
        return result
    }

    private func handshake(_ result: JSONObject, _ revision: ProtocolVersion) throws(RPCError) -> JSONObject {
        if let type = result["resultType"]?.string, type != "complete" {
            guard method == "tools/call" else { throw .inside(Self.asksBack) }
            return ["content": [["type": "text", "text": .string(Self.asksBack)]], "isError": true]
        }
        var result = result
        for name in Self.modern { result[name] = nil }
        // Any JSON from 2026-07-28 on, an object before.
        if let content = result["structuredContent"], content.object == nil { result["structuredContent"] = nil }
        if revision < .june2025, let content = result["content"]?.array {
            result["content"] = .array(content.map(Self.withoutLink))
        }
        return result
    }

    private static let asksBack =
        "the app asks for something before it goes on, and this client said that it cannot be asked"

    /// Links came with 2025-06-18; before it, a strict reader fails at them.
    private static func withoutLink(_ block: JSON) -> JSON {
        guard block["type"] == "resource_link", let uri = block["uri"]?.string else { return block }
        return ["type": "text", "text": .string("see the resource \(uri)")]
    }
}
