import Glibc
package import Model

/// Dials what is in the network: TCP to a numeric address, through the interface that a link-local one belongs to.
package struct LANDialer: Dialer {
    private let limit: Duration
    private let clock: any Clock<Duration>

    /// - Parameters:
    ///   - limit: How long the other side may take to answer.
    ///   - clock: What the limit is measured with.
    package init(limit: Duration = .seconds(5), clock: any Clock<Duration> = PollerClock()) {
        self.limit = limit
        self.clock = clock
    }

    package func dial(_ route: Route) async throws -> Connection {
        guard case .lan(let lan) = route else {
            throw DialError(.noRoute, "\(route) is not in the network; plug the device in to reach it over the cable")
        }
        let address = try Self.address(of: lan)
        do {
            let socket = try await address.connect(within: limit, clock: clock)
            SocketOption.setNoDelay(socket.number)
            return Connection(descriptor: socket, halfClose: .propagates)
        } catch let error as SocketError {
            throw Self.failure(error, address)
        }
    }

    /// The socket address of a route, if it is one that may be dialled.
    static func address(of route: LANRoute) throws(DialError) -> SocketAddress {
        let shown = "\(Route.lan(route))"
        guard route.port != 0 else {
            throw DialError(.forbidden, "\(shown) has port 0, which nobody can listen on; correct the port")
        }
        guard let address = SocketAddress(numeric: route.address, port: route.port) else {
            throw DialError(.forbidden, "\(SanitizedText(shown)) is not a numeric address; write it like 192.168.1.20")
        }
        guard !address.isUnspecified, !address.isMulticast else {
            throw DialError(.forbidden, "\(shown) is not the address of one machine; correct the address")
        }
        guard case .ipv6(let number, let port, let scope) = address, address.needsScope, scope == 0 else {
            return address
        }
        let index = route.interfaceIndex != 0 ? route.interfaceIndex : route.interface.map { if_nametoindex($0) } ?? 0
        guard index != 0 else {
            throw DialError(.unreachable, "\(shown) is valid on one link only; say on which interface it is")
        }
        return .ipv6(number, port: port, scope: index)
    }

    private static func failure(_ error: SocketError, _ address: SocketAddress) -> DialError {
        guard case .failed(_, _, let code) = error else {
            if case .timedOut = error { return DialError(.timedOut, "\(error)") }
            return DialError(.failed, "\(error)")
        }
        let words = SocketError.words(for: code)
        switch code {
        case ECONNREFUSED, ECONNRESET:
            return DialError(.refused, "nothing listens on \(address); start the app there, or check the port")
        case ETIMEDOUT:
            return DialError(.timedOut, "\(SocketError.timedOut(address))")
        case EHOSTUNREACH, ENETUNREACH, ENETDOWN, EHOSTDOWN, EADDRNOTAVAIL, ENODEV, EAFNOSUPPORT:
            return DialError(
                .unreachable,
                "there is no way to \(address) (\(words)); check that both are in the same network"
            )
        case EACCES, EPERM:
            return DialError(.forbidden, "this machine does not allow a connection to \(address); check its firewall")
        case _ where error.isExhaustion:
            return DialError(.limit, "\(error)")
        default:
            return DialError(.failed, "\(address) could not be connected to: \(words)")
        }
    }
}
