import JSON
import Model

extension ServerInfo {
    /// What Patchbay calls itself towards an app; who calls through it is nobody's business there.
    static let us: JSONObject = ["name": "patchbay", "version": .string(Version.text)]

    /// With which a server of the stateless era is told from the others.
    static let discoveryRequest = RPCRequest(id: .text("discover"), method: "server/discover", params: discovery)

    private static let discovery: JSONObject = [
        "_meta": [
            "io.modelcontextprotocol/protocolVersion": .string(ProtocolVersion.july2026.rawValue),
            "io.modelcontextprotocol/clientInfo": .object(us),
            "io.modelcontextprotocol/clientCapabilities": [:],
        ]
    ]

    /// `initialize`: for everybody we can do nothing for an app, for one caller what that one can.
    static func handshake(for own: ClientSessionParameters? = nil) -> RPCRequest {
        let params: JSONObject = [
            "protocolVersion": .string((own?.revision ?? .latestWithHandshake).rawValue),
            "capabilities": .object(own?.faculties.capabilities ?? [:]), "clientInfo": .object(us),
        ]
        return RPCRequest(id: .text("initialize"), method: "initialize", params: params)
    }
}
