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

/// What the protocol itself has to say in a request's `_meta`.
struct RequestMeta: Hashable, Sendable {
    static let prefix = "io.modelcontextprotocol/"
    static let revisionName = prefix + "protocolVersion"
    static let capabilitiesName = prefix + "clientCapabilities"
    static let clientName = prefix + "clientInfo"
    static let logLevelName = prefix + "logLevel"
    static let subscriptionName = prefix + "subscriptionId"
    static let serverName = prefix + "serverInfo"

    let revision: JSON?
    let capabilities: JSON?
    let logLevel: String?
    let progressToken: RPCID?

    /// Takes it out of the parameters; what is left is the server's.
    init(from params: inout JSONObject) {
        guard var meta = params["_meta"]?.object else {
            (revision, capabilities, logLevel, progressToken) = (nil, nil, nil, nil)
            return
        }
        revision = meta[Self.revisionName]
        capabilities = meta[Self.capabilitiesName]
        logLevel = meta[Self.logLevelName]?.string
        progressToken = meta["progressToken"].flatMap(RPCID.init)
        for name in [Self.revisionName, Self.capabilitiesName, Self.clientName, Self.logLevelName, "progressToken"] {
            meta[name] = nil
        }
        params["_meta"] = meta.members.isEmpty ? nil : .object(meta)
    }
}
