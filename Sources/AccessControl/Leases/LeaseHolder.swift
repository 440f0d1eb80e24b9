package import Model

/// The object that a lease covers: a whole phone, because its apps share one screen, or an endpoint without a cable.
///
/// An endpoint without a cable may be linked to a phone. At its approved address, the same launch of the app answers
/// as on the cable. Both then share a lease (`LeaseTable`).
package enum LeaseTarget: Hashable, Sendable {
    case device(UDID)
    case endpoint(EndpointID)

    package init(_ endpoint: Endpoint) {
        self = endpoint.location.udid.map { .device($0) } ?? .endpoint(endpoint.id)
    }

    /// The phone; nil for an endpoint without one.
    package var device: UDID? {
        if case .device(let udid) = self { udid } else { nil }
    }

    /// The UDID of the phone or the ID of the endpoint. `patchbay lease` accepts both.
    package var name: String {
        switch self {
        case .device(let udid): udid.text
        case .endpoint(let id): id.text
        }
    }
}

/// The client that holds a lease: a user, an agent or a grant.
///
/// The commands of one user are one holder. Each agent is a holder of its own, also an agent of the same user. A user's
/// lease therefore stops the user's own agents.
package struct LeaseHolder: Hashable, Sendable {
    /// An identifier shared by all requests of the holder.
    package let key: String
    /// The name that other clients see.
    package let name: SanitizedText
    /// False for a user. A user's lease also slides while others wait.
    package let isAgent: Bool
    /// The grant with which the lease ends; nil without a grant.
    package let grant: String?
    /// The host of a client of another broker; nil for a client of this broker.
    let host: HostName?

    /// The key of an agent, or of a client of another host; nil for a user, whose key follows from the UID.
    package var agentKey: String? { isAgent || host != nil ? key : nil }

    init(key: String, name: SanitizedText, isAgent: Bool, grant: String? = nil, host: HostName? = nil) {
        self.key = key
        self.name = name
        self.isAgent = isAgent
        self.grant = grant
        self.host = host
    }

    /// Returns the key of a user's commands, which is also the key of a tunnel without another holder.
    package static func key(ofUser uid: UInt32) -> String { "uid:\(uid)" }

    /// The holder of the leases that a user's commands take.
    package static func user(_ uid: UInt32) -> LeaseHolder {
        LeaseHolder(key: key(ofUser: uid), name: SanitizedText("user \(uid)"), isAgent: false)
    }

    fileprivate static func agent(ofUser uid: UInt32, process: Int32) -> LeaseHolder {
        LeaseHolder(
            key: "\(key(ofUser: uid)) pid:\(process)",
            name: SanitizedText("an agent of user \(uid) (process \(process))"),
            isAgent: true
        )
    }

    fileprivate static func holder(ofGrant id: String, called name: SanitizedText?) -> LeaseHolder {
        LeaseHolder(key: "grant:\(id)", name: name ?? SanitizedText("grant \(id)"), isAgent: true, grant: id)
    }

    /// Returns the holder with a key: an agent of a user, or a grant. Nil for any other key.
    package init?(agentKey key: String) {
        if key.hasPrefix("grant:") {
            self = Self.holder(ofGrant: String(key.dropFirst("grant:".count)), called: nil)
            return
        }
        let parts = key.split(separator: " ")
        guard parts.count == 2, parts[0].hasPrefix("uid:"), parts[1].hasPrefix("pid:"),
            let user = UInt32(parts[0].dropFirst(4)), let process = Int32(parts[1].dropFirst(4))
        else { return nil }
        self = Self.agent(ofUser: user, process: process)
    }
}

extension Principal {
    /// The holder of the leases that this client takes.
    package var leaseHolder: LeaseHolder {
        switch actor {
        case .process(let uid, let pid, _) where isMCPClient: .agent(ofUser: uid, process: pid)
        case .process(let uid, _, _), .dashboard(let uid, _): .user(uid)
        case .grant(let id): .holder(ofGrant: id, called: grant?.name)
        case .member(let host, let client):
            LeaseHolder(
                key: holder,
                name: member?.name ?? client,
                isAgent: member?.caller?.isAgent ?? true,
                host: host
            )
        case .anonymous, .broker:
            LeaseHolder(key: holder, name: SanitizedText(holder), isAgent: true)
        }
    }
}

/// The reason why a lease, a changing call or a connection was refused.
package struct LeaseConflict: Hashable, Sendable, CustomStringConvertible {
    /// The endpoint or the phone that the client asked for.
    package private(set) var target: LeaseTarget
    /// The holder of the lease. Nil if the client's own lease has ended, or if only a changing call of another client
    /// still runs.
    package let holder: SanitizedText?
    /// The host that granted the lease; nil for this broker.
    var host: HostName?
    /// The reason that the holder gave; nil without one.
    var note: SanitizedText?
    /// The sentence about the end of the client's own lease; nil for any other conflict.
    var ending: String?
    /// The rest of the lease in whole seconds, at least 1. Nil for a lease of another host, which alone knows its end.
    package let seconds: Int?
    /// The end of the lease, in local time. Nil for a lease of another host.
    package let end: String?

    /// The ID of the endpoint or the UDID of the phone.
    package var name: String { target.name }

    /// True if the client's own lease has ended without its knowledge.
    package var isOwnEnding: Bool { ending != nil }

    /// Returns the conflict with the ID by which a client knows the endpoint.
    package func known(to principal: Principal) -> LeaseConflict {
        guard case .endpoint(let id) = target else { return self }
        var known = self
        known.target = .endpoint(principal.knownID(of: id))
        return known
    }

    package var description: String {
        if let ending { return ending }
        guard let holder else { return "a changing call of another client still runs on \(name)" }
        if let host { return "\(name) is leased to \"\(holder)\" on the host \(host)" }
        let reason = note.map { " (\"\($0)\")" } ?? ""
        return "\(name) is leased to \"\(holder)\"\(reason) until \(end ?? "-") (\(seconds ?? 1) s)"
    }
}
