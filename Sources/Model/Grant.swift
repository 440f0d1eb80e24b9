package import FoundationEssentials

/// A scoped, expiring and revocable permission, without its token. `patchbay grants` shows it.
package struct Grant: Hashable, Sendable, Codable, Identifiable {
    /// The reason why the grant ended.
    package enum EndReason: String, Hashable, Sendable, Codable {
        case expired
        /// The grant was not used within its idle timeout.
        case idle
        case revoked
    }

    package let id: String
    /// The name that the redeemer chose.
    package let name: SanitizedText
    package let permissions: Permissions
    package let binding: GrantBinding
    /// True if the grant is valid at the remote listener. Nil means false.
    package let remote: Bool?
    /// The grant under which this grant was created. This grant ends with its parent.
    package let parent: String?
    /// The invite from which the grant was redeemed.
    package let invite: String?
    package let createdAt: Date
    package let expiresAt: Date
    package let lastUsedAt: Date
    /// The idle timeout in seconds. The grant ends after this time without use.
    package let idleSeconds: Int
    /// The URL of the only MCP server at which the token is valid. Nil unless OAuth gave the grant.
    package let resource: String?
    package let endReason: EndReason?

    package init(
        id: String,
        name: SanitizedText,
        permissions: Permissions,
        binding: GrantBinding,
        remote: Bool? = nil,
        parent: String?,
        invite: String?,
        createdAt: Date,
        expiresAt: Date,
        lastUsedAt: Date,
        idleSeconds: Int,
        resource: String? = nil,
        endReason: EndReason?
    ) {
        self.id = id
        self.name = name
        self.permissions = permissions
        self.binding = binding
        self.remote = remote
        self.parent = parent
        self.invite = invite
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.lastUsedAt = lastUsedAt
        self.idleSeconds = idleSeconds
        self.resource = resource
        self.endReason = endReason
    }
}

extension Grant {
    /// The path of `resource`, with which the path of each request must agree.
    package var resourcePath: Substring? {
        resource.map { url in
            let parts = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
            return "/" + (parts.count > 3 ? parts[3] : "")
        }
    }
}

/// The condition that a client must meet in addition to holding the token.
package enum GrantBinding: Hashable, Sendable, Codable {
    /// No further condition.
    case bearer
    /// The client is a process of this user and connects through the unix socket.
    case user(UInt32)
    /// The client holds this key and connects through the remote listener. The grant has no token.
    case key(KeyPin)
    /// The client connects through the loopback listener, and the kernel attributes the connection to this user. The grant
    /// is the session of a browser, with the rights of an owner.
    case dashboard(UInt32)
    /// The client connects through this unix socket, which is for this grant alone. The grant has no token.
    case socket(String)
}

/// Encodes as `"bearer"`, `{"user": 1001}`, `{"key": "…"}`, `{"socket": "/…"}` or `{"dashboard": 1001}`.
extension GrantBinding {
    private enum Keys: String, CodingKey { case user, key, socket, dashboard }

    package init(from decoder: any Decoder) throws {
        if let word = try? decoder.singleValueContainer().decode(String.self) {
            guard word == "bearer" else {
                throw DecodingError.dataCorrupted(
                    .init(codingPath: decoder.codingPath, debugDescription: "a binding's only word is \"bearer\"")
                )
            }
            self = .bearer
            return
        }
        let container = try decoder.container(keyedBy: Keys.self)
        if let key = try container.decodeIfPresent(KeyPin.self, forKey: .key) {
            self = .key(key)
            return
        }
        if let path = try container.decodeIfPresent(String.self, forKey: .socket) {
            self = .socket(path)
            return
        }
        if let user = try container.decodeIfPresent(UInt32.self, forKey: .dashboard) {
            self = .dashboard(user)
            return
        }
        self = .user(try container.decode(UInt32.self, forKey: .user))
    }

    package func encode(to encoder: any Encoder) throws {
        switch self {
        case .bearer:
            var container = encoder.singleValueContainer()
            try container.encode("bearer")
        case .user(let user):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(user, forKey: .user)
        case .key(let key):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(key, forKey: .key)
        case .dashboard(let user):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(user, forKey: .dashboard)
        case .socket(let path):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(path, forKey: .socket)
        }
    }
}

/// The socket and the permissions of a new grant: the body of `POST /v1/grants`.
package struct SocketGrantSpec: Hashable, Sendable, Codable {
    /// The absolute path of the socket that the broker creates.
    package var path: String
    /// The name of the grant in lists.
    package var name: SanitizedText
    package var permissions: Permissions
    /// The lifetime in seconds, 1 s to 30 days. Nil means 8 hours.
    package var lifetimeSeconds: Int?
    /// The idle timeout in seconds, 1 s to 30 days. Nil means two hours.
    package var idleSeconds: Int?

    package init(
        path: String,
        name: SanitizedText,
        permissions: Permissions,
        lifetimeSeconds: Int? = nil,
        idleSeconds: Int? = nil
    ) {
        self.path = path
        self.name = name
        self.permissions = permissions
        self.lifetimeSeconds = lifetimeSeconds
        self.idleSeconds = idleSeconds
    }
}

/// A grant with its token: the response to a redemption. No other response contains the token.
package struct IssuedGrant: Sendable, Codable {
    package let grant: Grant
    /// The secret token `pbg_…`. Clients send it as `Authorization: Bearer pbg_…`. Nil if the grant is bound to a TLS key.
    package let token: String?

    package init(grant: Grant, token: String?) {
        self.grant = grant
        self.token = token
    }
}

/// The IDs of the ended grants and invites: the response to a revocation.
///
/// All connections and tunnels under these grants are closed before the response is sent.
package struct RevocationResult: Hashable, Sendable, Codable {
    package let ended: [String]

    package init(ended: [String]) { self.ended = ended }
}
