package import AccessControl
package import Model
package import SystemIO

/// An error of the team.
package enum TeamError: Error, Hashable, Sendable {
    /// Another lease has the endpoint or the phone.
    case claimed(LeaseTarget, by: TeamClaim)
    /// This host has no lease in the registry, so it can grant no lease of its own; with the reason.
    case noSession(reason: String)
    /// The registry belongs to another team, or to none.
    case wrongTeam(expected: SanitizedText, found: SanitizedText?)
    /// The registry was written by a later version of Patchbay.
    case newerSchema(Int)
    /// Another host of the team has the name.
    case nameTaken(HostName)
    case store(TeamStoreError)
    case state(StateError)
    /// A value could not be encoded.
    case notEncoded(key: String, reason: String)
}

extension TeamError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .claimed(let target, let claim):
            "\(target.name) is leased to \"\(claim.holder)\" on the host \(claim.host); wait for the end of the lease"
        case .noSession(let reason):
            "no lease can be granted, because this host has no connection to the registry of the team: \(reason); "
                + "run `patchbay team status`"
        case .wrongTeam(let expected, let found?):
            "the registry belongs to the team \"\(found)\", and this host to \"\(expected)\"; "
                + "correct the addresses in [team] etcd"
        case .wrongTeam(let expected, nil):
            "the registry has no team, and this host belongs to \"\(expected)\"; correct the addresses in [team] etcd"
        case .newerSchema(let schema):
            "the registry of the team has the schema \(schema), and this version of Patchbay knows "
                + "\(TeamMeta.currentSchema); install the version of the other hosts"
        case .nameTaken(let host):
            "the team has another host with the name \(host); choose another name, or remove that host first"
        case .store(let error): error.description
        case .state(let error): error.description
        case .notEncoded(let key, let reason): "the entry \(key) could not be encoded: \(reason)"
        }
    }
}
