/// The handshake parameters of a client session. They tell the app which requests the client supports.
struct ClientSessionParameters: Hashable, Sendable {
    /// The path of the app's MCP server.
    let path: String
    let protocolVersion: ProtocolVersion
    let capabilities: ClientCapabilities
}
