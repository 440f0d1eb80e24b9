import Glibc
import Model
import SystemIO

/// Opens the listening sockets for a tunnel's local address.
enum TunnelSocketBinder {
    /// The number of attempts to find a port that is free on both loopback addresses.
    private static let attempts = 64

    /// Opens the listeners.
    ///
    /// - Parameters:
    ///   - local: The requested address.
    ///   - access: The mode and the owner of a unix socket.
    ///   - port: For an address with port 0, the previously assigned port. If it is taken, the call fails.
    /// - Returns: One listener, or two if both loopback addresses are requested.
    /// - Throws: `TunnelError.inUse`, `.cannotListen`, `.badLocal`.
    static func listen(
        on local: ListenAddress,
        access: UnixSocketAccess = .private,
        port: UInt16? = nil
    ) throws(TunnelError) -> [Listener] {
        switch local {
        case .unix(let path):
            return [try listener(.unix(path: path), access: access, for: local)]
        case .tcp(nil, let asked), .tcp("localhost"?, let asked):
            let wanted = asked == 0 ? port ?? 0 : asked
            return wanted == 0 ? try onFreePort(for: local) : try onBoth(wanted, for: local)
        case .tcp(let host?, let asked):
            guard let address = SocketAddress(numeric: host, port: asked == 0 ? port ?? 0 : asked) else {
                throw .badLocal(
                    local,
                    "\"\(SanitizedText(host))\" is not a numeric address of this machine; write it like 127.0.0.1"
                )
            }
            return [try listener(address, for: local)]
        }
    }

    /// Listens on 127.0.0.1 and ::1, or on 127.0.0.1 alone if the kernel has no IPv6.
    private static func onBoth(_ port: UInt16, for local: ListenAddress) throws(TunnelError) -> [Listener] {
        let first = try listener(.ipv4(INADDR_LOOPBACK, port: port), for: local)
        return [first] + (try listenOnIPv6(first.address.port ?? port, for: local))
    }

    /// Listens on a port that is free on both loopback addresses.
    private static func onFreePort(for local: ListenAddress) throws(TunnelError) -> [Listener] {
        // A port that is free on one address only stays open until the end. Otherwise the kernel would offer it again.
        var unusable: [Listener] = []
        for _ in 0..<attempts {
            let first = try listener(.ipv4(INADDR_LOOPBACK, port: 0), for: local)
            do {
                return [first] + (try listenOnIPv6(first.address.port ?? 0, for: local))
            } catch .inUse {
                unusable.append(first)
            }
        }
        throw .cannotListen(local, "no port is free on both 127.0.0.1 and ::1")
    }

    /// Listens on ::1; empty if the kernel has no IPv6.
    private static func listenOnIPv6(_ port: UInt16, for local: ListenAddress) throws(TunnelError) -> [Listener] {
        do {
            return [try Listener(on: .ipv6(1, port: port, scope: 0))]
        } catch SocketError.failed(_, _, let code) where [EAFNOSUPPORT, EADDRNOTAVAIL].contains(code) {
            return []  // The kernel has no IPv6, or sysctl disables it.
        } catch {
            throw tunnelError(from: error, for: local)
        }
    }

    private static func listener(
        _ address: SocketAddress,
        access: UnixSocketAccess = .private,
        for local: ListenAddress
    ) throws(TunnelError) -> Listener {
        do {
            return try Listener(on: address, access: access)
        } catch {
            throw tunnelError(from: error, for: local)
        }
    }

    private static func tunnelError(from error: any Error, for local: ListenAddress) -> TunnelError {
        switch error {
        case SocketError.inUse: .inUse(local)
        case SocketError.failed(_, _, let code) where code == EACCES || code == EPERM:
            .cannotListen(local, "\(SocketError.message(for: code)); only root may use ports below 1024")
        case SocketError.failed(_, _, EADDRNOTAVAIL):
            .cannotListen(local, "this machine does not have that address; see `ip address`")
        case SocketError.failed(_, _, ENOENT):
            .cannotListen(local, "its folder does not exist")
        case SocketError.notASocket(let path): .cannotListen(local, "\(path) exists and is not a socket")
        case SocketError.failed(_, _, let code): .cannotListen(local, SocketError.message(for: code))
        default: .cannotListen(local, "\(error)")
        }
    }
}
