import Client
import Glibc
import Model
import NIOCore
import NIOPosix

/// The check of the addresses that a member of the team publishes, before this broker connects to one.
///
/// A member chooses its addresses itself. Without a check, it could make this broker send the beginning of a TLS handshake
/// to programs that only this machine can reach.
struct MemberAddressCheck: Sendable {
    /// Returns the reason why a numeric address cannot be that of another host; nil if it can be.
    let refusal: @Sendable (_ address: String) -> String?

    /// Returns the numeric addresses of a broker that may be dialled. A name is looked up, and its addresses are checked.
    ///
    /// - Throws: `ClientError.unreachable` if there are none.
    func targets(of broker: BrokerAddress) async throws(ClientError) -> [BrokerAddress] {
        guard case .remote(let host, let port, let pin) = broker else { return [broker] }
        let isNumeric = (try? NIOCore.SocketAddress(ipAddress: host, port: 0)) != nil
        let addresses = isNumeric ? [host] : await Self.lookUp(host)
        let allowed = addresses.filter { refusal($0) == nil }
        guard !allowed.isEmpty else {
            let reason = addresses.lazy.compactMap(refusal).first ?? "the name is unknown"
            throw .unreachable(address: broker.description, reason: reason)
        }
        return allowed.map { .remote(host: $0, port: port, pin: pin) }
    }

    /// Returns the addresses of a name, in getaddrinfo(3)'s order of preference; none for an unknown name.
    private static func lookUp(_ name: String) async -> [String] {
        let addresses = try? await NIOThreadPool.singleton.runIfActive { () -> [String] in
            var hints = addrinfo()
            hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
            var list: UnsafeMutablePointer<addrinfo>?
            guard getaddrinfo(name, nil, &hints, &list) == 0 else { return [] }
            defer { freeaddrinfo(list) }
            return sequence(first: list) { $0?.pointee.ai_next }.prefix { $0 != nil }.compactMap { entry in
                guard let entry else { return nil }
                var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
                let status = getnameinfo(
                    entry.pointee.ai_addr,
                    entry.pointee.ai_addrlen,
                    &text,
                    socklen_t(text.count),
                    nil,
                    0,
                    NI_NUMERICHOST
                )
                return status == 0
                    ? String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self) : nil
            }
        }
        return addresses ?? []
    }
}
