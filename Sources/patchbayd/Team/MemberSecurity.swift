import API
import Client
import Model
import NIOCore
import TLS

extension MemberServerTLS: API.MemberTransportSecurity {}

/// TLS to the brokers of the other hosts, with the certificate of this host.
struct MemberSecurity: MemberClientSecurity {
    let tls: MemberClientTLS

    func security(to host: HostName) -> any ClientTransportSecurity { HostSecurity(tls: tls, host: host) }
}

/// TLS to the broker of one host.
private struct HostSecurity: ClientTransportSecurity {
    let tls: MemberClientTLS
    let host: HostName

    func secure(_ channel: any Channel, pin: KeyPin) throws { try tls.secure(channel, to: host, key: pin) }

    func failure(of error: any Error) -> TransportSecurityFailure? {
        if case TLSError.notOfTeam = error { return .otherKey }
        return switch ClientFailure(error) {
        case .otherKey: .otherKey
        case .keyRefused: .keyRefused
        case .closed: .closed
        case .failed(let reason): .failed(reason: reason)
        case nil: nil
        }
    }
}
