import JSON

/// How a server says what it is: `initialize` and `server/discover`.
enum InitializeResponse {
    /// The answer to `initialize`, and the revision that it agrees on.
    static func handshake(
        _ params: JSONObject,
        _ server: ServerDescription
    ) throws(RPCError) -> (result: JSONObject, revision: ProtocolVersion) {
        guard let wanted = params["protocolVersion"]?.string else {
            throw .invalidParams("initialize must say its protocolVersion, a text")
        }
        var revision = ProtocolVersion(rawValue: wanted) ?? .latestWithHandshake
        if revision.isStateless { revision = .latestWithHandshake }
        var result: JSONObject = [
            "protocolVersion": .string(revision.rawValue),
            "capabilities": .object(capabilities(of: server, in: revision)),
            "serverInfo": .object(info(of: server, in: revision)),
        ]
        result["instructions"] = server.instructions.map(JSON.string)
        return (result, revision)
    }

    static func discovery(_ server: ServerDescription) -> JSONObject {
        var result: JSONObject = [
            "supportedVersions": .array(ProtocolVersion.allCases.reversed().map { .string($0.rawValue) }),
            "capabilities": .object(capabilities(of: server, in: .july2026)),
        ]
        result["instructions"] = server.instructions.map(JSON.string)
        return result
    }

    private static func capabilities(of server: ServerDescription, in revision: ProtocolVersion) -> JSONObject {
        var capabilities = server.capabilities
        // Nothing of ours carries tasks: neither as 2025-11-25 had them nor as an extension.
        capabilities["tasks"] = nil
        if !revision.isStateless { capabilities["extensions"] = nil }
        if revision < .march2025 { capabilities["completions"] = nil }
        return capabilities
    }

    private static func info(of server: ServerDescription, in revision: ProtocolVersion) -> JSONObject {
        var info = server.info
        if revision < .june2025 { info["title"] = nil }
        if revision < .november2025 { for name in ["icons", "websiteUrl", "description"] { info[name] = nil } }
        return info
    }
}
