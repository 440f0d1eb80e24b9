package import FoundationEssentials

/// A local address that forwards to an endpoint or to a port of a device.
///
/// A tunnel is desired state, not a connection. It stays while the phone is unplugged or while usbmuxd or the broker
/// restarts.
package struct Tunnel: Hashable, Sendable, Codable, Identifiable {
    package enum State: Hashable, Sendable {
        /// Listening, but the target is unavailable. Connections are reset.
        case waiting(reason: String)
        /// Listening, and the target is available.
        case active
        /// Not listening, because the local address could not be bound.
        case failed(reason: String)
    }

    /// The identifier `t1`, `t2`, …, which is never reused.
    package let id: String
    package let spec: TunnelSpec
    /// The creator of the tunnel. On a loopback address only this user's clients may connect, unless the
    /// specification allows others.
    package let owner: UInt32
    package var state: State
    /// The current listen addresses: `127.0.0.1:43211`, `[::1]:43211`, or the path of a socket. `tcp:0` is replaced by
    /// the chosen port.
    package var listenAddresses: [ListenAddress]
    package var statistics: TunnelStatistics
    package let createdAt: Date
    /// The ID of the tunnel that this tunnel replaced. Present in the response to the creation only.
    package var replaced: String?

    package init(
        id: String,
        spec: TunnelSpec,
        owner: UInt32,
        state: State,
        listenAddresses: [ListenAddress] = [],
        statistics: TunnelStatistics = TunnelStatistics(),
        createdAt: Date
    ) {
        self.id = id
        self.spec = spec
        self.owner = owner
        self.state = state
        self.listenAddresses = listenAddresses
        self.statistics = statistics
        self.createdAt = createdAt
    }
}

/// The specification of a tunnel. Stored in the state directory and restored at start.
package struct TunnelSpec: Hashable, Sendable, Codable {
    package var local: ListenAddress
    package var target: TunnelTarget
    /// Fails instead of replacing a tunnel on the same local address, like the option of adb with the same name.
    package let noRebind: Bool
    /// False for an ephemeral tunnel, which ends with the connection that created it (`patchbay iproxy`).
    package var persistent: Bool
    /// Accepts clients of every user of this machine, not only of the owner.
    package let allowAnyUser: Bool
    /// Accepts HTTP requests that a web page could have sent.
    package let allowBrowsers: Bool

    package init(
        local: ListenAddress,
        target: TunnelTarget,
        noRebind: Bool = false,
        persistent: Bool = true,
        allowAnyUser: Bool = false,
        allowBrowsers: Bool = false
    ) {
        self.local = local
        self.target = target
        self.noRebind = noRebind
        self.persistent = persistent
        self.allowAnyUser = allowAnyUser
        self.allowBrowsers = allowBrowsers
    }
}

/// The target of a tunnel.
package enum TunnelTarget: Hashable, Sendable {
    /// A socket on a phone.
    case device(USBRoute)
    /// An endpoint. Each new connection uses the route that is best at that time.
    case endpoint(EndpointID)

    /// A TCP port on the loopback of a phone.
    package static func device(udid: UDID, port: UInt16) -> TunnelTarget { .device(USBRoute(udid: udid, port: port)) }

    /// The protocol of a stream to a target, in the header `Upgrade` of `GET /v1/streams`.
    package static let streamProtocol = "patchbay-stream/1"
}

/// Counters since the tunnel was created or the broker started, whichever is later.
package struct TunnelStatistics: Hashable, Sendable, Codable {
    /// Bytes from the local client to the target (up) and back (down).
    package var bytesUp: UInt64 = 0
    package var bytesDown: UInt64 = 0
    /// Bytes per second over the last five seconds. Nil if the broker does not report them.
    package var bytesPerSecondUp: UInt64?
    package var bytesPerSecondDown: UInt64?
    /// The number of accepted connections, and of those that are open now.
    package var connections: UInt64 = 0
    package var open: UInt64 = 0
    /// The number of failed connections by `DialError.Reason`.
    package var failures: [String: UInt64] = [:]
    /// The duration of the last successful dial in milliseconds.
    package var lastConnectMilliseconds: Double?
    package var lastConnectedAt: Date?

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
    private enum Keys: String, CodingKey { case local, target, noRebind, persistent, allowAnyUser, allowBrowsers }

    /// Decodes a specification. Requests may omit `allowAnyUser` and `allowBrowsers`, which default to false.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        self.init(
            local: try container.decode(ListenAddress.self, forKey: .local),
            target: try container.decode(TunnelTarget.self, forKey: .target),
            noRebind: try container.decode(Bool.self, forKey: .noRebind),
            persistent: try container.decode(Bool.self, forKey: .persistent),
            allowAnyUser: try container.decodeIfPresent(Bool.self, forKey: .allowAnyUser) ?? false,
            allowBrowsers: try container.decodeIfPresent(Bool.self, forKey: .allowBrowsers) ?? false
        )
    }
}

/// Encodes as `{"device": …}` with the form of a USB route, or `{"endpoint": "<id>"}`.
extension TunnelTarget: Codable {
    private enum Keys: String, CodingKey { case device, endpoint }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        if let id = try container.decodeIfPresent(EndpointID.self, forKey: .endpoint) {
            self = .endpoint(id)
        } else {
            self = .device(try container.decode(USBRoute.self, forKey: .device))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        switch self {
        case .device(let route): try container.encode(route, forKey: .device)
        case .endpoint(let id): try container.encode(id, forKey: .endpoint)
        }
    }
}

extension Tunnel {
    /// The address and port in the URL of a TCP tunnel, as `127.0.0.1:9333`; nil without one.
    package var authority: String? {
        guard case .tcp(let host, let port)? = listenAddresses.first else { return nil }
        let address = host ?? "127.0.0.1"
        return address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)"
    }
}
