package import FoundationEssentials

/// A local address that leads to an endpoint or to a port of a device.
///
/// Desired state, not a connection: it stands while the phone is unplugged, usbmuxd restarts or the broker does.
package struct Tunnel: Hashable, Sendable, Codable, Identifiable {
    package enum State: Hashable, Sendable {
        /// Listening, and what it leads to is not there now; connections are refused with the reason.
        case waiting(reason: String)
        /// Listening, and what it leads to is there.
        case active
        /// Not listening: the local address could not be had.
        case failed(reason: String)
    }

    /// `t1`, `t2`…; never used again for another tunnel.
    package let id: String
    package let spec: TunnelSpec
    /// The user who asked for it. On a loopback address only that user's clients come through, unless the spec says otherwise.
    package let owner: UInt32
    package var state: State
    /// What is listened on now: `127.0.0.1:43211`, `[::1]:43211`, or a socket's path. `tcp:0` shows the port it got.
    package var bound: [ListenAddress]
    package var statistics: TunnelStatistics
    package let since: Date
    /// The tunnel that gave its local address up for this one; said once, to whoever asked for this one.
    package var replaced: String?

    package init(
        id: String,
        spec: TunnelSpec,
        owner: UInt32,
        state: State,
        bound: [ListenAddress] = [],
        statistics: TunnelStatistics = TunnelStatistics(),
        since: Date
    ) {
        self.id = id
        self.spec = spec
        self.owner = owner
        self.state = state
        self.bound = bound
        self.statistics = statistics
        self.since = since
    }
}

/// What was asked for: where to listen and where it leads. Kept in the state directory and restored at start.
package struct TunnelSpec: Hashable, Sendable, Codable {
    package var local: ListenAddress
    package let target: TunnelTarget
    /// Refuse to replace a tunnel that is on the same local address already, as adb's option of the name.
    package let noRebind: Bool
    /// False for a tunnel that lives only as long as the connection that asked for it (`patchbay iproxy`).
    package var isKept: Bool
    /// Lets clients of every user of this machine in, not only the owner's.
    package let allowsAnyUser: Bool
    /// Lets HTTP requests in that a web page may have sent.
    package let allowsBrowsers: Bool

    package init(
        local: ListenAddress,
        target: TunnelTarget,
        noRebind: Bool = false,
        isKept: Bool = true,
        allowsAnyUser: Bool = false,
        allowsBrowsers: Bool = false
    ) {
        self.local = local
        self.target = target
        self.noRebind = noRebind
        self.isKept = isKept
        self.allowsAnyUser = allowsAnyUser
        self.allowsBrowsers = allowsBrowsers
    }
}

/// Where a tunnel leads.
package enum TunnelTarget: Hashable, Sendable {
    /// A TCP port on the loopback of a phone.
    case device(udid: UDID, port: UInt16)
    /// An endpoint by whatever route is best at each new connection.
    case endpoint(EndpointID)
}

/// Counted since the tunnel was made or the broker started, whichever is later.
package struct TunnelStatistics: Hashable, Sendable, Codable {
    /// Bytes from the local client towards the target, and back.
    package var bytesUp: UInt64 = 0
    package var bytesDown: UInt64 = 0
    /// The same per second, over the last five seconds. Nil where an older broker answers.
    package var rateUp: UInt64?
    package var rateDown: UInt64?
    /// Connections accepted so far, and those open now.
    package var connections: UInt64 = 0
    package var open: UInt64 = 0
    /// Connections that failed, by reason (`DialError.Reason`).
    package var failures: [String: UInt64] = [:]
    /// How long the last successful dial took, in milliseconds.
    package var lastConnectMilliseconds: Double?
    package var lastConnected: Date?

    package init() {}
}

extension Tunnel.State: Codable {
    private enum Keys: String, CodingKey { case name, reason }

    package var name: String {
        switch self {
        case .waiting: "waiting"
        case .active: "active"
        case .failed: "failed"
        }
    }

    package var reason: String? {
        switch self {
        case .waiting(let reason), .failed(let reason): reason
        case .active: nil
        }
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        let reason = try container.decodeIfPresent(String.self, forKey: .reason) ?? ""
        let name = try container.decode(String.self, forKey: .name)
        switch name {
        case "waiting": self = .waiting(reason: reason)
        case "active": self = .active
        case "failed": self = .failed(reason: reason)
        default:
            throw DecodingError.dataCorruptedError(
                forKey: .name,
                in: container,
                debugDescription: "\"\(name)\" is not the state of a tunnel"
            )
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(name, forKey: .name)
        try container.encodeIfPresent(reason, forKey: .reason)
    }
}

extension TunnelSpec {
    private enum Keys: String, CodingKey { case local, target, noRebind, isKept, allowsAnyUser, allowsBrowsers }

    /// Reads what is written without the two permissions as well: state files and callers that are older than they.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        self.init(
            local: try container.decode(ListenAddress.self, forKey: .local),
            target: try container.decode(TunnelTarget.self, forKey: .target),
            noRebind: try container.decode(Bool.self, forKey: .noRebind),
            isKept: try container.decode(Bool.self, forKey: .isKept),
            allowsAnyUser: try container.decodeIfPresent(Bool.self, forKey: .allowsAnyUser) ?? false,
            allowsBrowsers: try container.decodeIfPresent(Bool.self, forKey: .allowsBrowsers) ?? false
        )
    }
}

/// In JSON `{"device": {"udid": …, "port": …}}` or `{"endpoint": "<id>"}`.
extension TunnelTarget: Codable {
    private enum Keys: String, CodingKey { case device, endpoint }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        if let id = try container.decodeIfPresent(EndpointID.self, forKey: .endpoint) {
            self = .endpoint(id)
        } else {
            // A phone's port is written as a route over the cable is.
            let route = try container.decode(USBRoute.self, forKey: .device)
            self = .device(udid: route.udid, port: route.port)
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        switch self {
        case .device(let udid, let port): try container.encode(USBRoute(udid: udid, port: port), forKey: .device)
        case .endpoint(let id): try container.encode(id, forKey: .endpoint)
        }
    }
}
