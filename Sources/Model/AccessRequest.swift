package import FoundationEssentials

/// A process on this machine that asks for access and waits for a person's yes (in the manner of RFC 8628).
package struct AccessRequest: Hashable, Sendable, Codable {
    /// `WDJB-MJHT`: what the person types.
    package let code: String
    /// The process that asks.
    package let asker: AuditActor
    package let name: SanitizedText
    package let permissions: Permissions
    package let expires: Date

    package init(code: String, asker: AuditActor, name: SanitizedText, permissions: Permissions, expires: Date) {
        self.code = code
        self.asker = asker
        self.name = name
        self.permissions = permissions
        self.expires = expires
    }
}

/// What a process on this machine asks for: the body of `POST /v1/requests`.
package struct AccessRequestSpec: Hashable, Sendable, Codable {
    package var name: SanitizedText
    package var permissions: Permissions
    /// A token for any door and any user, where the usual one is for the asking user's processes on the unix socket.
    package var isBearer: Bool?
    /// Seconds that the grant is to live: 1 to 30 days. Nil is 8 hours.
    package var lifetime: Int?

    package init(name: SanitizedText, permissions: Permissions, isBearer: Bool? = nil, lifetime: Int? = nil) {
        self.name = name
        self.permissions = permissions
        self.isBearer = isBearer
        self.lifetime = lifetime
    }
}

/// A request that waits for a person: the answer to `POST /v1/requests`.
package struct AccessRequestCreated: Sendable, Codable {
    package let request: AccessRequest
    /// What to ask with how it stands: a secret.
    package let handle: String
    /// Seconds to wait between two such questions.
    package let interval: Int
    /// What a person has to type.
    package let approveWith: String

    package init(request: AccessRequest, handle: String, interval: Int) {
        self.request = request
        self.handle = handle
        self.interval = interval
        approveWith = "patchbay approve \(request.code)"
    }
}

/// The question how a request stands: the body of `POST /v1/requests/poll`.
package struct AccessRequestPoll: Sendable, Codable {
    /// What `POST /v1/requests` answered.
    package let handle: String
    /// As in `RedemptionSpec`; the same ones in each question.
    package let client: String
    /// What the grant is to be called.
    package let name: SanitizedText?

    package init(handle: String, client: String, name: SanitizedText? = nil) {
        self.handle = handle
        self.client = client
        self.name = name
    }
}

/// How a request stands: the answer to `POST /v1/requests/poll`.
package struct AccessRequestStatus: Sendable, Codable {
    package enum State: String, Hashable, Sendable, Codable {
        case waiting
        case denied
        case granted
    }

    package let state: State
    /// Seconds until the next question, while it waits.
    package let interval: Int?
    /// With its secret, when it is granted.
    package let granted: IssuedGrant?

    package init(state: State, interval: Int? = nil, granted: IssuedGrant? = nil) {
        self.state = state
        self.interval = interval
        self.granted = granted
    }
}
