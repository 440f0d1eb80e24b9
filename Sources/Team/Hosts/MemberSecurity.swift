import Client
import Model
import NIOCore
import Transport

/// TLS to the brokers of the other hosts, with the certificate of this host. A removed host loses its connections.
struct MemberSecurity: MemberClientSecurity {
    let tls: MemberClientTLS
    let members: any MemberDirectory
    let connections: MemberConnections

    func security(to host: HostName) -> any ClientTransportSecurity {
        HostSecurity(tls: tls, members: members, connections: connections, host: host)
    }
}

/// TLS to the broker of one host.
private struct HostSecurity: ClientTransportSecurity {
    let tls: MemberClientTLS
    let members: any MemberDirectory
    let connections: MemberConnections
    let host: HostName

    func secure(_ channel: any Channel, pin: KeyPin) throws {
        try tls.secure(channel, to: host, key: pin)
        try connections.addOutgoing(channel, to: host, key: pin)
        // Asked after the addition, so that a removal at this moment closes the connection or is seen here.
        guard members.accepts(host, key: pin) else { throw HostError.absent(host) }
    }

    func failure(of error: any Error) -> TransportSecurityFailure? {
        if case TLSError.notOfTeam = error { return .otherKey }
        if case HostError.absent = error { return .notTrusted }
        return TransportSecurityFailure(ofTLS: error)
    }
}

extension TransportSecurityFailure {
    /// - Returns: Nil for an error that is not of TLS.
    init?(ofTLS error: any Error) {
        switch ClientFailure(error) {
        case .otherKey: self = .otherKey
        case .keyRefused: self = .keyRefused
        case .closed: self = .closed
        case .failed(let reason): self = .failed(reason: reason)
        case nil: return nil
        }
    }
}
