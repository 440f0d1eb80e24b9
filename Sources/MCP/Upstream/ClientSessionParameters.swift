import JSON

/// What is said in the handshake of a line that is one caller's alone, so that the app may ask that caller.
struct ClientSessionParameters: Hashable, Sendable {
    /// Where the app's server was met.
    let path: String
    let revision: ProtocolVersion
    let faculties: ClientCapabilities
}
