/// An app's own entry: the body of `POST /v1/registrations`.
///
/// The body names no address. The broker takes the address from which the request came.
package struct RegistrationSpec: Sendable, Codable {
    /// The bundle identifier.
    package let app: SanitizedText
    package let version: SanitizedText?
    /// The port on which the app listens.
    package let port: UInt16
    /// The protocol of the app's server: `appreveal`, `mcp`, the name of a profile, …
    package let kind: EndpointKind
    /// The abilities of the app, for lists. Nil means none.
    package let capabilities: [SanitizedText]?
    /// A text that is new at each launch. Nil means that only the port identifies the launch.
    package let launchID: SanitizedText?
    /// The name of the device. Nil means the name of the grant.
    package let device: SanitizedText?
    /// The app's session token: one line of printable ASCII without spaces, 1 to 4,096 bytes.
    package let secret: String?

    private enum CodingKeys: String, CodingKey {
        case app, version, port, capabilities, launchID, device, secret
        case kind = "protocol"
    }

    package init(
        app: SanitizedText,
        version: SanitizedText? = nil,
        port: UInt16,
        kind: EndpointKind,
        capabilities: [SanitizedText]? = nil,
        launchID: SanitizedText? = nil,
        device: SanitizedText? = nil,
        secret: String? = nil
    ) {
        self.app = app
        self.version = version
        self.port = port
        self.kind = kind
        self.capabilities = capabilities
        self.launchID = launchID
        self.device = device
        self.secret = secret
    }
}

extension RegistrationSpec: CustomStringConvertible, CustomReflectable {
    /// Leaves the secret out.
    package var description: String { "\(app) (\(kind)) on port \(port)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// A registration: the response to `POST /v1/registrations`.
package struct Registration: Hashable, Sendable, Codable, Identifiable {
    /// The interval of the heartbeats in seconds.
    package static let heartbeatSeconds = 30

    /// A random ID, new at each launch of the app.
    package let id: String
    package let endpoint: EndpointID
    /// The interval of `PUT /v1/registrations/{id}` in seconds. Three missing ones make the endpoint offline.
    package let heartbeatSeconds: Int

    package init(id: String, endpoint: EndpointID) {
        self.id = id
        self.endpoint = endpoint
        heartbeatSeconds = Self.heartbeatSeconds
    }
}
