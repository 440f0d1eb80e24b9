import JSON
import Model

extension AppIntroduction {
    /// What Patchbay calls itself towards an app; who calls through it is nobody's business there.
    static let us: JSONObject = ["name": "patchbay", "version": .string(Version.text)]

    /// `server/discover`, with which a server of the stateless era is told from the others.
    static let discovery: JSONObject = [
        "_meta": [
            "io.modelcontextprotocol/protocolVersion": .string(Revision.july2026.rawValue),
            "io.modelcontextprotocol/clientInfo": .object(us),
            "io.modelcontextprotocol/clientCapabilities": [:],
        ]
    ]

    /// `initialize`: for everybody we can do nothing for an app, for one caller what that one can.
    static func handshake(_ own: OwnHandshake?) -> JSONObject {
        [
            "protocolVersion": .string((own?.revision ?? .latestWithHandshake).rawValue),
            "capabilities": .object(own?.faculties.capabilities ?? [:]), "clientInfo": .object(us),
        ]
    }
}
