import AccessControl
import Model

/// The profiles, and the parts of the broker that a profile's server needs beside its connections.
struct ProfileContext: Sendable {
    let index: ProfileIndex
    let access: ProfileAccess
    let artifacts: ArtifactStore
}

/// The permissions of one endpoint, for requests that the broker makes for itself.
struct ProfileAccess: Sendable {
    /// Returns the routes and secrets that the broker may use now.
    let admit: @Sendable () async throws -> DeliveryAuthorization
    /// Stores a new secret of the endpoint, with a line in the audit log.
    let store: @Sendable (EndpointSecret) async throws -> Void
}

/// The reason why a call of a profile's tool was not executed, for an agent.
struct ProfileRefusal: Error, Hashable {
    let reason: String
    /// The machine-readable code, as in `AppError.code`.
    let code: String

    init(reason: String, code: String) {
        self.reason = reason
        self.code = code
    }

    /// Creates the refusal of an unknown tool or an invalid argument.
    init(_ error: ProfileError) {
        let code = if case .unknownTool = error { "unknown-tool" } else { "refused" }
        self.init(reason: "\(error)", code: code)
    }
}

extension ProfileError {
    /// The error of a response that the profile does not describe.
    var appError: AppError {
        guard case .invalidResponse(let reason) = self else { return .invalidResponse("\(self)") }
        return .invalidResponse(reason)
    }
}

/// The profiles by the endpoint kinds that they describe.
struct ProfileIndex: Sendable {
    private let profiles: [EndpointKind: Profile]

    init(_ profiles: [Profile]) {
        self.profiles = Dictionary(profiles.map { ($0.kind, $0) }) { first, _ in first }
    }

    subscript(_ kind: EndpointKind) -> Profile? { profiles[kind] }

    /// Returns whether an endpoint may have tools. Kinds that are known to be something else are not asked.
    func mayHaveTools(_ endpoint: Endpoint) -> Bool { profiles[endpoint.kind] != nil || !endpoint.isTunnelOnly }
}
