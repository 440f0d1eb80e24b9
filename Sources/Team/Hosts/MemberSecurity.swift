import Client
import Model
import NIOCore
import Transport

/// TLS to the broker of one other host, with the certificate of this host. A removed host loses its connections.
struct MemberSecurity: ClientTransportSecurity {
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

    func failure(of error: any Error) -> ClientFailure? {
        if case TLSError.notAccepted = error { return .otherKey }
        if case HostError.absent = error { return .notTrusted }
        return ClientFailure(error)
    }
}
