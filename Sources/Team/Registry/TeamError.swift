package import Model
package import SystemIO

/// An error of the team.
package enum TeamError: Error, Hashable, Sendable {
    /// The team registry belongs to another team, or to none.
    case wrongTeam(expected: SanitizedText, found: SanitizedText?)
    /// The team registry was written by a later version of Patchbay.
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
