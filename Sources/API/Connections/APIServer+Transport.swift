extension APIServer {
    /// The kind of socket, which decides how clients are identified.
    package enum Transport: Hashable, Sendable {
        /// Clients are identified by their peer credentials, or by a grant.
        case unix
        /// Clients are identified by a grant.
        case tcp(port: UInt16)
        /// Clients on other machines, over TLS, are identified by their key or by a grant.
        case remote(port: UInt16)
        /// Brokers of other hosts, over TLS, are identified by their certificates, and name their clients.
        case team(port: UInt16)
        /// Every client has this grant, whatever user it runs as.
        case socketGrant(String)

        var hostHeaderRule: RequestValidator.HostHeaderRule {
            switch self {
            case .unix, .socketGrant: .loopback(port: nil)
            case .tcp(let port): .loopback(port: port)
            case .remote, .team: .any
            }
        }

        /// True for the loopback listener, where only a token identifies a client. A browser reaches no socket, and rejects the
        /// certificate of the other listeners.
        var servesPages: Bool { if case .tcp = self { true } else { false } }

        /// The scheme of the dashboard's page; nil for a listener without the page. On a forwarded unix socket, a page would
        /// be an owner without a token.
        var pageScheme: String? {
            switch self {
            case .tcp: "http"
            case .remote: "https"
            case .unix, .team, .socketGrant: nil
            }
        }

        /// The grant of every client; nil for other transports.
        var grant: String? {
            if case .socketGrant(let grant) = self { grant } else { nil }
        }

        var share: ConnectionLimiter.Share {
            switch self {
            case .unix: .owners
            case .tcp: .loopback
            case .socketGrant: .grantSockets
            case .remote: .remote
            case .team: .team
            }
        }
    }
}
