package import AccessControl
package import Model

/// A key of a team's registry.
///
/// The host is the first part of a key with a session lease, because etcd grants permissions by ranges of keys.
package enum TeamKey: Hashable, Sendable {
    /// The name of the team and the schema of the team registry (`TeamMeta`). Written once.
    case meta
    /// A `TeamMember`, written by the authority only.
    case member(HostName)
    /// The `TeamHost` of a running broker.
    case host(HostName)
    /// A `TeamEndpoint`. The ID is that on its host.
    case endpoint(EndpointID, on: HostName)
    /// A `Device`, by phone and transport.
    case device(UDID, Device.Transport, on: HostName)
    /// A `TeamClaim`.
    case claim(LeaseTarget)

    /// The prefix of all keys.
    package static let root = "/patchbay/v1/"

    /// The prefix of the members.
    package static let members = "\(root)member/"

    /// The prefix of the running hosts.
    static let hosts = "\(root)host/"

    /// The prefix of the claims, which every host writes.
    package static let claims = "\(root)claim/"

    /// The prefix of the endpoints of all hosts.
    static let endpoints = "\(root)ep/"

    /// The prefix of the phones of all hosts.
    static let devices = "\(root)dev/"

    /// The prefix of the endpoints of a host.
    package static func endpoints(of host: HostName) -> String { "\(endpoints)\(host)/" }

    /// The prefix of the phones of a host.
    package static func devices(of host: HostName) -> String { "\(devices)\(host)/" }

    package var text: String {
        switch self {
        case .meta: "\(Self.root)meta"
        case .member(let host): "\(Self.root)member/\(host)"
        case .host(let host): "\(Self.root)host/\(host)"
        case .endpoint(let id, let host): "\(Self.endpoints(of: host))\(id.onItsHost)"
        case .device(let udid, let transport, let host): "\(Self.devices(of: host))\(udid).\(transport.rawValue)"
        case .claim(let target): "\(Self.root)claim/\(target.claimName)"
        }
    }

    /// Parses a key. Returns nil for a key that this version does not know, and for another spelling of a UDID.
    package init?(_ text: String) {
        guard text.hasPrefix(Self.root) else { return nil }
        let parts = text.dropFirst(Self.root.count).split(separator: "/", omittingEmptySubsequences: false)
        switch (parts[0], parts.count) {
        case ("meta", 1):
            self = .meta
        case ("member", 2):
            guard let host = HostName(parts[1]) else { return nil }
            self = .member(host)
        case ("host", 2):
            guard let host = HostName(parts[1]) else { return nil }
            self = .host(host)
        case ("claim", 2):
            guard let target = LeaseTarget(claimName: parts[1]) else { return nil }
            self = .claim(target)
        case ("ep", 3):
            guard let host = HostName(parts[1]), let id = EndpointID(parts[2]), id.host == nil else { return nil }
            self = .endpoint(id, on: host)
        case ("dev", 3):
            guard let host = HostName(parts[1]), let dot = parts[2].lastIndex(of: "."),
                let udid = UDID(parts[2][..<dot]),
                let transport = Device.Transport(rawValue: String(parts[2][parts[2].index(after: dot)...]))
            else { return nil }
            self = .device(udid, transport, on: host)
        default: return nil
        }
        guard self.text == text else { return nil }
    }
}

extension TeamStoreWrite {
    /// The deletion of all entries that a host itself writes.
    package static func deletion(of host: HostName) -> [TeamStoreWrite] {
        [
            .delete(key: TeamKey.host(host).text),
            .deleteAll(prefix: TeamKey.endpoints(of: host)),
            .deleteAll(prefix: TeamKey.devices(of: host)),
        ]
    }
}

extension LeaseTarget {
    /// The last part of the key of a claim: `device-UDID` or `endpoint-ID.HOST`.
    var claimName: String {
        switch self {
        case .device(let udid): "device-\(udid)"
        case .endpoint(let id): "endpoint-\(id)"
        }
    }

    /// Parses the last part of the key of a claim. Returns nil for other text, and for an endpoint without its host.
    init?(claimName text: some StringProtocol) {
        let parts = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        switch parts[0] {
        case "device":
            guard let udid = UDID(parts[1]) else { return nil }
            self = .device(udid)
        case "endpoint":
            guard let id = EndpointID(parts[1]), id.host != nil else { return nil }
            self = .endpoint(id)
        default: return nil
        }
    }
}
