package import FoundationEssentials

/// A host of a team, as its broker publishes it.
package struct TeamHost: Hashable, Sendable, Codable {
    package let name: HostName
    package let version: String
    /// The addresses of the team listener, as `ADDRESS:PORT`, the best one first.
    package let addresses: [String]
    /// The start of the broker.
    package let since: Date
    /// A number that grows with each publication of all entries: at the start, and after the loss of the store's lease.
    package let generation: UInt64
    /// True on the host with the certificate authority; nil on others.
    package let isAuthority: Bool?

    package init(
        name: HostName,
        version: String,
        addresses: [String],
        since: Date,
        generation: UInt64,
        isAuthority: Bool? = nil
    ) {
        self.isAuthority = isAuthority
        self.name = name
        self.version = version
        self.addresses = addresses
        self.since = since
        self.generation = generation
    }
}

/// A host that belongs to the team. Only the authority of the team writes these entries.
package struct TeamMember: Hashable, Sendable, Codable {
    package let name: HostName
    /// The pin of the key in the host's certificate.
    package let key: KeyPin
    package let addedAt: Date

    package init(name: HostName, key: KeyPin, addedAt: Date) {
        self.name = name
        self.key = key
        self.addedAt = addedAt
    }
}

/// The lease of an endpoint or a phone, as the host that granted it publishes it.
package struct TeamClaim: Hashable, Sendable, Codable {
    /// The host whose broker granted the lease.
    package let host: HostName
    /// The endpoint that the lease was requested for, with its host.
    package let endpoint: EndpointID
    package let device: UDID?
    /// The name of the holder, for display.
    package let holder: SanitizedText
    /// The key of the holder on the host that granted the lease (`LeaseHolder.key`). No secret, and no proof of anything.
    package let holderKey: String?
    /// The ID of the lease on its host.
    package let lease: String?
    /// The length of the lease in seconds.
    package let seconds: Int?
    package let note: SanitizedText?
    package let createdAt: Date

    package init(
        host: HostName,
        endpoint: EndpointID,
        device: UDID?,
        holder: SanitizedText,
        holderKey: String? = nil,
        lease: String? = nil,
        seconds: Int? = nil,
        note: SanitizedText?,
        createdAt: Date
    ) {
        self.holderKey = holderKey
        self.lease = lease
        self.seconds = seconds
        self.host = host
        self.endpoint = endpoint
        self.device = device
        self.holder = holder
        self.note = note
        self.createdAt = createdAt
    }
}

extension TeamClaim {
    /// Decodes a claim of any host. The claim of a host with wrong facts still counts. A lease ID that no broker gives is
    /// left out. A length outside `0...LeaseSpec.maxSeconds` is clamped.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        host = try container.decode(HostName.self, forKey: .host)
        endpoint = try container.decode(EndpointID.self, forKey: .endpoint)
        device = try container.decodeIfPresent(UDID.self, forKey: .device)
        holder = try container.decode(SanitizedText.self, forKey: .holder)
        holderKey = try container.decodeIfPresent(String.self, forKey: .holderKey)
        lease = try container.decodeIfPresent(String.self, forKey: .lease).flatMap { Lease.isLocalID($0) ? $0 : nil }
        seconds = try container.decodeIfPresent(Int.self, forKey: .seconds).map {
            min(max($0, 0), LeaseSpec.maxSeconds)
        }
        note = try container.decodeIfPresent(SanitizedText.self, forKey: .note)
        createdAt = try container.decode(Date.self, forKey: .createdAt)
    }
}

/// The client of another host's broker, which sends the request: the header `Patchbay-Caller`, as JSON in base64.
///
/// The broker that owns the endpoint trusts the other host to name its own clients, and adds the host to the name.
package struct TeamCaller: Hashable, Sendable, Codable {
    package static let header = "Patchbay-Caller"

    /// The key of the client as a holder of leases, unique on its host.
    package let holder: String
    /// The name that other clients see.
    package let name: SanitizedText
    /// False for a user's own commands.
    package let isAgent: Bool
    /// The permissions of the client on its host. The selector has the IDs of the owning host.
    package let permissions: Permissions

    package init(holder: String, name: SanitizedText, isAgent: Bool, permissions: Permissions) {
        self.holder = holder
        self.name = name
        self.isAgent = isAgent
        self.permissions = permissions
    }
}
