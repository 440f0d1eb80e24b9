import Apps
import Model

/// Builds the results of `initialize` and `server/discover`.
enum InitializeResultBuilder {
    /// Returns the result of `initialize` and the negotiated version.
    static func initializeResult(
        _ params: JSONObject,
        _ handler: HandlerDescription
    ) throws(RPCError) -> (result: JSONObject, version: ProtocolVersion) {
        guard let requested = params["protocolVersion"]?.string else {
            throw .invalidParams("the parameter protocolVersion of initialize must be a string")
        }
        var version = ProtocolVersion(rawValue: requested) ?? .latestWithHandshake
        if version.isStateless { version = .latestWithHandshake }
        var result: JSONObject = [
            "protocolVersion": .string(version.rawValue),
            "capabilities": .object(capabilities(of: handler, in: version)),
            "serverInfo": .object(info(of: handler, in: version)),
        ]
        result["instructions"] = handler.instructions.map(JSON.string)
        return (result, version)
    }

    static func discoverResult(_ handler: HandlerDescription) -> JSONObject {
        var result: JSONObject = [
            "supportedVersions": .array(ProtocolVersion.allCases.reversed().map { .string($0.rawValue) }),
            "capabilities": .object(capabilities(of: handler, in: .v2026_07_28)),
        ]
        result["instructions"] = handler.instructions.map(JSON.string)
        return result
    }

    private static func capabilities(of handler: HandlerDescription, in version: ProtocolVersion) -> JSONObject {
        var capabilities = handler.capabilities
        // The broker does not forward tasks, neither those of 2025-11-25 nor the extension.
        capabilities["tasks"] = nil
        if !version.isStateless { capabilities["extensions"] = nil }
        if version < .v2025_03_26 { capabilities["completions"] = nil }
        return capabilities
    }

    private static func info(of handler: HandlerDescription, in version: ProtocolVersion) -> JSONObject {
        var info = handler.info
        if version < .v2025_06_18 { info["title"] = nil }
        if version < .v2025_11_25 { for name in ["icons", "websiteUrl", "description"] { info[name] = nil } }
        return info
    }
}

/// The protocol's own members of a request's `_meta`.
struct RequestMeta: Hashable, Sendable {
    static let prefix = "io.modelcontextprotocol/"
    static let protocolVersionKey = prefix + "protocolVersion"
    static let capabilitiesKey = prefix + "clientCapabilities"
    static let clientInfoKey = prefix + "clientInfo"
    static let logLevelKey = prefix + "logLevel"
    static let subscriptionIDKey = prefix + "subscriptionId"
    static let serverInfoKey = prefix + "serverInfo"

    let protocolVersion: JSON?
    let capabilities: JSON?
    let clientInfo: JSON?
    let logLevel: String?
    let progressToken: RPCID?
    /// Members without a prefix, by MCP's own exception for the names of W3C Trace Context.
    let trace: TraceContext?

    /// Removes the members from the parameters. The remaining parameters belong to the handler.
    init(from params: inout JSONObject) {
        guard var meta = params["_meta"]?.object else {
            (protocolVersion, capabilities, clientInfo, logLevel) = (nil, nil, nil, nil)
            (progressToken, trace) = (nil, nil)
            return
        }
        protocolVersion = meta[Self.protocolVersionKey]
        capabilities = meta[Self.capabilitiesKey]
        clientInfo = meta[Self.clientInfoKey]
        logLevel = meta[Self.logLevelKey]?.string
        progressToken = meta["progressToken"].flatMap(RPCID.init)
        trace = TraceContext(parent: meta[TraceContext.parentName]?.string, state: meta[TraceContext.stateName]?.string)
        for name in [
            Self.protocolVersionKey, Self.capabilitiesKey, Self.clientInfoKey, Self.logLevelKey, "progressToken",
            TraceContext.parentName, TraceContext.stateName,
        ] {
            meta[name] = nil
        }
        params["_meta"] = meta.members.isEmpty ? nil : .object(meta)
    }
}
