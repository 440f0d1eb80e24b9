import Apps
import Model

/// Adapts a handler's bare result to a protocol version: adds required members and removes unknown ones.
struct ResultAdapter: Sendable {
    /// The methods that return a cache lifetime.
    private static let cacheable: Set<String> = [
        "server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read",
    ]
    /// Members that only 2026-07-28 has.
    private static let statelessMembers = ["resultType", "ttlMs", "cacheScope"]

    let mode: ProtocolMode
    let method: String

    /// Returns the result in the form of the protocol version.
    ///
    /// - Parameters:
    ///   - result: The bare result.
    ///   - serverInfo: The `Implementation` that the handler describes.
    /// - Returns: The adapted result.
    /// - Throws: If the version cannot express the result.
    func adapt(_ result: JSONObject, serverInfo: JSONObject) throws(RPCError) -> JSONObject {
        switch mode {
        case .stateless: adaptForStateless(result, serverInfo)
        case .session(let version): try adaptForSession(result, version)
        }
    }

    /// Returns the error with the code of the protocol version.
    func adapt(_ error: RPCError) -> RPCError {
        // 2026-07-28 has no separate code for a missing resource.
        guard mode == .stateless, error.code == -32_002 else { return error }
        return RPCError(-32_602, error.message, data: error.data)
    }

    private func adaptForStateless(_ result: JSONObject, _ serverInfo: JSONObject) -> JSONObject {
        var result = result
        if result["resultType"] == nil { result["resultType"] = "complete" }
        if Self.cacheable.contains(method), result["resultType"] == "complete" {
            if result["ttlMs"] == nil { result["ttlMs"] = 0 }
            if result["cacheScope"] == nil { result["cacheScope"] = "private" }
        }
        var meta = result["_meta"]?.object ?? [:]
        if meta[RequestMeta.serverInfoKey] == nil { meta[RequestMeta.serverInfoKey] = .object(serverInfo) }
        result["_meta"] = .object(meta)
        return result
    }

    private func adaptForSession(_ result: JSONObject, _ version: ProtocolVersion) throws(RPCError) -> JSONObject {
        if let type = result["resultType"]?.string, type != "complete" {
            guard method == "tools/call" else { throw .internalError(Self.inputRequiredMessage) }
            return ["content": [["type": "text", "text": .string(Self.inputRequiredMessage)]], "isError": true]
        }
        var result = result
        for name in Self.statelessMembers { result[name] = nil }
        // Any JSON since 2026-07-28; an object before.
        if let content = result["structuredContent"], content.object == nil { result["structuredContent"] = nil }
        if method == "tools/list", let tools = result["tools"]?.array {
            result["tools"] = .array(tools.map(Self.withoutForeignOutput))
        }
        if version < .v2025_06_18, let content = result["content"]?.array {
            result["content"] = .array(content.map(Self.withoutLink))
        }
        return result
    }

    private static let inputRequiredMessage =
        "the app requests input before it continues, and this client does not support that"

    /// Removes the schema of a result that is no object. The SDKs for TypeScript drop the whole list before 2026-07-28.
    private static func withoutForeignOutput(_ tool: JSON) -> JSON {
        guard var object = tool.object, let output = object["outputSchema"], output["type"] != "object" else {
            return tool
        }
        object["outputSchema"] = nil
        return .object(object)
    }

    /// Replaces a resource link by text. Links exist since 2025-06-18, and strict clients of earlier versions reject
    /// them.
    private static func withoutLink(_ block: JSON) -> JSON {
        guard block["type"] == "resource_link", let uri = block["uri"]?.string else { return block }
        return ["type": "text", "text": .string("see the resource \(uri)")]
    }
}
