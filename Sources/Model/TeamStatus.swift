package import FoundationEssentials

/// The team of this broker: the response to `GET /v1/team`.
package struct TeamStatus: Hashable, Sendable, Codable {
    /// The name of the team; nil for a broker without a team. All other members are then absent or empty.
    package var team: SanitizedText?
    /// The name of this host.
    package var host: HostName?
    /// The host with the certificate authority.
    package var authority: HostName?
    /// The pin of this host's key.
    package var key: KeyPin?
    /// The end of this host's certificate.
    package var certificateExpiresAt: Date?
    /// The members of the team, by name.
    package var hosts: [TeamHostStatus]
    /// The servers of the team's registry.
    package var etcd: [TeamRegistryServer]
    /// The time since which the list of hosts may be outdated; nil while the team registry is reachable.
    package var staleSince: Date?
    /// True if the running broker uses another team or certificate than the saved one.
    package var restartNeeded: Bool
    /// The reason why this host cannot use the registry of the team, or why other hosts cannot reach it. Nil if there
    /// is none.
    package var problem: String?
    /// The next step after `problem`; nil if there is none.
    package var hint: String?

    package init(
        team: SanitizedText? = nil,
        host: HostName? = nil,
        authority: HostName? = nil,
        key: KeyPin? = nil,
        certificateExpiresAt: Date? = nil,
        hosts: [TeamHostStatus] = [],
        etcd: [TeamRegistryServer] = [],
        staleSince: Date? = nil,
        restartNeeded: Bool = false,
        problem: String? = nil,
        hint: String? = nil
    ) {
        self.team = team
        self.host = host
        self.authority = authority
        self.key = key
        self.certificateExpiresAt = certificateExpiresAt
        self.hosts = hosts
        self.etcd = etcd
        self.staleSince = staleSince
        self.restartNeeded = restartNeeded
        self.problem = problem
        self.hint = hint
    }
}

/// A member of the team, as another broker sees it.
package struct TeamHostStatus: Hashable, Sendable, Codable {
    package enum State: String, Hashable, Sendable, Codable {
        /// The broker of the host renews its entries in the team registry.
        case online
        case offline
        /// This broker has not started with the team yet.
        case unknown
    }

    package let name: HostName
    package let state: State
    /// The start of the host's broker; nil while it is offline.
    package let since: Date?
    /// The addresses of its team listener. Empty while it is offline.
    package let addresses: [String]
    /// The version of its broker; nil while it is offline.
    package let version: String?
    package let key: KeyPin

    /// - Parameters:
    ///   - member: The member.
    ///   - host: The entry of its broker in the team registry; nil if it has none.
    ///   - isKnown: False if this broker cannot read the team registry yet.
    package init(_ member: TeamMember, host: TeamHost?, isKnown: Bool = true) {
        name = member.name
        key = member.key
        state = !isKnown ? .unknown : host == nil ? .offline : .online
        since = host?.since
        addresses = host?.addresses ?? []
        version = host?.version
    }
}

/// A server of the team's registry.
package struct TeamRegistryServer: Hashable, Sendable, Codable {
    /// `https://ADDRESS:PORT`.
    package let url: String
    /// The reason why it does not answer; nil if it answers.
    package let problem: String?

    package init(url: String, problem: String?) {
        self.url = url
        self.problem = problem
    }
}

/// A new team: the body of `POST /v1/team`.
package struct TeamSpec: Sendable, Codable {
    /// 1 to 32 bytes.
    package let team: SanitizedText
    /// The name of this host. Nil means the name of the configuration, else that of the machine.
    package var host: HostName?
    /// The URLs of the etcd servers. Nil means those of the configuration or of the earlier call.
    package var etcd: [String]?
    /// The administrator of an etcd cluster that existed before. Nil if the team's authority signs etcd's certificates.
    package var administrator: EtcdAdministratorSpec?

    /// The allowed length of a team's name in bytes.
    package static let nameLengths = 1...32

    package init(
        team: SanitizedText,
        host: HostName? = nil,
        etcd: [String]? = nil,
        administrator: EtcdAdministratorSpec? = nil
    ) {
        self.team = team
        self.host = host
        self.etcd = etcd
        self.administrator = administrator
    }
}

/// The certificate of an etcd administrator, all as PEM. The key is a secret.
package struct EtcdAdministratorSpec: Sendable, Codable {
    /// The authorities that signed the certificates of the etcd servers.
    package let authority: String
    package let certificate: String
    package let key: String

    package init(authority: String, certificate: String, key: String) {
        self.authority = authority
        self.certificate = certificate
        self.key = key
    }
}

/// A request for the certificates of an etcd node: the body of `POST /v1/team/certificates`.
package struct TeamCertificateSpec: Sendable, Codable {
    /// The common name in the certificates of the nodes of etcd for each other. No host can have it, because it has a
    /// dot.
    package static let peerName = "etcd.peer"

    /// A certificate signing request (PKCS #10), as PEM.
    package let request: String
    /// The host names and numeric addresses of the node.
    package let addresses: [String]

    package init(request: String, addresses: [String]) {
        self.request = request
        self.addresses = addresses
    }
}

/// The response to `POST /v1/team/certificates`, all as PEM.
package struct TeamCertificate: Sendable, Codable {
    /// The certificate for the clients of the node.
    package let certificate: String
    /// The certificate for the other nodes, with the same key.
    package let peerCertificate: String
    /// The certificate of the team's authority.
    package let authority: String

    package init(certificate: String, peerCertificate: String, authority: String) {
        self.certificate = certificate
        self.peerCertificate = peerCertificate
        self.authority = authority
    }
}
