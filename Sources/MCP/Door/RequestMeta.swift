import JSON

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
