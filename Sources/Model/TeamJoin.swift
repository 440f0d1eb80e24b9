package import FoundationEssentials

/// A new invite for hosts: the body of `POST /v1/team/invites`.
package struct TeamInviteSpec: Sendable, Codable {
    /// The address of this host in the pairing string. Nil means the first address of its team listener.
    package var address: String?
    /// The number of hosts that may join with the invite, each once. Nil means one.
    package var hosts: Int?
    /// The lifetime in seconds. Nil means `standardSeconds`.
    package var seconds: Int?
    /// The names that the hosts may have, where `*` is any text. Nil means all names.
    package var names: [String]?

    package static let standardSeconds = 600
    /// Allowed lifetimes in seconds, up to one day.
    package static let lifetimes = 1...86_400
    /// Allowed numbers of hosts.
    package static let hostCounts = 1...1_000
    /// The maximum number of names.
    package static let nameLimit = 100

    package init(address: String? = nil, hosts: Int? = nil, seconds: Int? = nil, names: [String]? = nil) {
        self.address = address
        self.hosts = hosts
        self.seconds = seconds
        self.names = names
    }

    /// Returns whether a text is the name of a host, or has `*` for any text in it.
    package static func isPattern(_ text: String) -> Bool {
        // A hyphen may begin no name, and an asterisk may stand for no text.
        HostName(text.replacing("*", with: "a")) != nil
    }
}

/// An invite with which further hosts may join: an item of the response to `GET /v1/team/invites`. It has no secret.
package struct OpenTeamInvite: Hashable, Sendable, Codable {
    package let id: String
    package let createdAt: Date
    package let expiresAt: Date
    /// The number of hosts that may join with the invite.
    package let hosts: Int
    /// The names that the hosts may have, where `*` is any text. Empty for all names.
    package let names: [String]
    /// The hosts that have used it.
    package let admitted: [HostName]

    package init(
        id: String,
        createdAt: Date,
        expiresAt: Date,
        hosts: Int,
        names: [String],
        admitted: [HostName]
    ) {
        self.id = id
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.hosts = hosts
        self.names = names
        self.admitted = admitted
    }
}

/// The response to `POST /v1/team/invites`. No other response has the pairing string.
package struct TeamInvite: Sendable, Codable {
    /// A `TeamPairingString`, a secret.
    package let pairing: String
    package let expiresAt: Date

    package init(pairing: String, expiresAt: Date) {
        self.pairing = pairing
        self.expiresAt = expiresAt
    }
}

/// The join of this host: the body of `POST /v1/team/join`.
package struct TeamJoinSpec: Sendable, Codable {
    /// A `TeamPairingString`.
    package let pairing: String
    /// The name of this host. Nil means the name of the configuration, else that of the machine.
    package var host: HostName?

    package init(pairing: String, host: HostName? = nil) {
        self.pairing = pairing
        self.host = host
    }
}

/// The request of a host that joins, to the authority of the team: the body of `POST /v1/team/members`.
package struct TeamMemberSpec: Sendable, Codable {
    /// The invite `pbi_…`, a secret.
    package let invite: String
    /// The name that the host wants.
    package let host: HostName
    /// A certificate signing request (PKCS #10) with the key of the host, as PEM.
    package let request: String

    package init(invite: String, host: HostName, request: String) {
        self.invite = invite
        self.host = host
        self.request = request
    }
}

/// The response to `POST /v1/team/members`: everything that a new member needs.
package struct TeamAdmission: Sendable, Codable {
    package let team: SanitizedText
    /// The certificate of the new member, as PEM.
    package let certificate: String
    /// The certificate of the team's authority, as PEM.
    package let authority: String
    /// The host with the authority, which sends this response.
    package let authorityHost: HostName
    /// The URLs of the etcd servers.
    package let etcd: [String]
    /// The authorities of the etcd servers, as PEM. Nil means the authority of the team.
    package let etcdAuthority: String?
    /// The members of the team, the new one included.
    package let members: [TeamMember]

    package init(
        team: SanitizedText,
        certificate: String,
        authority: String,
        authorityHost: HostName,
        etcd: [String],
        etcdAuthority: String?,
        members: [TeamMember]
    ) {
        self.team = team
        self.certificate = certificate
        self.authority = authority
        self.authorityHost = authorityHost
        self.etcd = etcd
        self.etcdAuthority = etcdAuthority
        self.members = members
    }
}

/// A request of a member for a new certificate, over TLS with the present one: the body of
/// `POST /v1/team/members/renewal`.
package struct TeamRenewalSpec: Sendable, Codable {
    /// A certificate signing request (PKCS #10) with the key of the member, as PEM.
    package let request: String

    package init(request: String) { self.request = request }
}

/// The response to `POST /v1/team/members/renewal`.
package struct TeamRenewal: Sendable, Codable {
    /// The new certificate of the member, as PEM.
    package let certificate: String
    /// The certificate of the team's authority, as PEM; nil from an older broker. It may be renewed, with the same key.
    package let authority: String?

    package init(certificate: String, authority: String?) {
        (self.certificate, self.authority) = (certificate, authority)
    }
}

/// The text `PATCHBAY-TEAM:1:HOST:PORT:PIN:INVITE`, with which a host joins a team. A secret, because of the invite.
///
/// The prefix differs from that of a `PairingString`, so that no command takes one for the other.
package struct TeamPairingString: Hashable, Sendable {
    package static let prefix = "PATCHBAY-TEAM:"

    /// The address of the authority's team listener.
    package let host: String
    package let port: UInt16
    /// The pin of the authority's key.
    package let pin: KeyPin
    /// The invite `pbi_…`.
    package let invite: String

    package init(host: String, port: UInt16, pin: KeyPin, invite: String) {
        self.host = host
        self.port = port
        self.pin = pin
        self.invite = invite
    }

    /// Parses a text strictly: `description` returns the same text.
    ///
    /// - Throws: `PairingString.ParseError`.
    package init(_ text: some StringProtocol) throws(PairingString.ParseError) {
        guard text.utf8.starts(with: Self.prefix.utf8) else { throw .notAPairingString }
        let rest = String(decoding: text.utf8.dropFirst(Self.prefix.utf8.count), as: UTF8.self)
        let parsed = try PairingString(PairingString.prefix + rest)
        guard let pin = parsed.pin else { throw .invalidPin }
        self.init(host: parsed.host, port: parsed.port, pin: pin, invite: parsed.invite)
    }
}

extension TeamPairingString: CustomStringConvertible {
    package var description: String {
        let pairing = PairingString(host: host, port: port, pin: pin, invite: invite)
        return Self.prefix + pairing.description.dropFirst(PairingString.prefix.count)
    }
}
