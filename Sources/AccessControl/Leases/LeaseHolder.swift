package import Model

/// The object that a lease covers: a whole phone, because its apps share one screen, or an endpoint without a cable.
///
/// An endpoint without a cable may be linked to a phone: an approved address where the same launch of the app answers
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
    let isAgent: Bool
    /// The grant with which the lease ends; nil without a grant.
    let grant: String?

    /// The key of an agent; nil for a user, whose key follows from the UID.
    package var agentKey: String? { isAgent ? key : nil }

    init(key: String, name: SanitizedText, isAgent: Bool, grant: String? = nil) {
        self.key = key
        self.name = name
        self.isAgent = isAgent
        self.grant = grant
    }

    /// Returns the key of a user's commands, which is also the key of a tunnel without another holder.
    package static func key(ofUser uid: UInt32) -> String { "uid:\(uid)" }
}

extension Principal {
    /// The holder of the leases that this client takes.
    package var leaseHolder: LeaseHolder {
        switch actor {
        case .process(let uid, let pid, _) where isMCPClient:
            LeaseHolder(
                key: "\(LeaseHolder.key(ofUser: uid)) pid:\(pid)",
                name: SanitizedText("an agent of user \(uid) (process \(pid))"),
                isAgent: true
            )
        case .process(let uid, _, _):
            LeaseHolder(key: LeaseHolder.key(ofUser: uid), name: SanitizedText("user \(uid)"), isAgent: false)
        case .grant(let id):
            LeaseHolder(key: holder, name: grant?.name ?? SanitizedText("grant \(id)"), isAgent: true, grant: id)
        case .anonymous, .broker:
            LeaseHolder(key: holder, name: SanitizedText(holder), isAgent: true)
        }
    }
}

/// The reason why a lease, a changing call or a connection was refused.
package struct LeaseConflict: Hashable, Sendable, CustomStringConvertible {
    /// The endpoint or the phone that the client asked for.
    package let target: LeaseTarget
    /// The holder of the lease; nil if there is no lease, but a changing call of another client still runs.
    package let holder: SanitizedText?
    /// The rest of the lease in whole seconds, at least 1.
    package let seconds: Int
    /// The end of the lease, in RFC 3339 format.
    package let end: String

    /// The ID of the endpoint or the UDID of the phone. `patchbay lease` accepts both.
    package var name: String {
        switch target {
        case .device(let udid): udid.text
        case .endpoint(let id): id.text
        }
    }

    package var description: String {
        guard let holder else { return "a changing call of another client still runs on \(name)" }
        return "\(name) is leased to \"\(holder)\" until \(end) (\(seconds) s)"
    }
}
