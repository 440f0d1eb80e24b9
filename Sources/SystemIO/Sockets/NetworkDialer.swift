import Glibc
package import Model

/// Dials network routes: TCP to a numeric address, for link-local addresses through their interface.
package struct NetworkDialer: Dialer {
    private let limit: Duration
    private let clock: any Clock<Duration>

    /// Creates a dialer.
    ///
    /// - Parameters:
    ///   - limit: The connect timeout.
    ///   - clock: Measures the timeout.
    package init(limit: Duration = .seconds(5), clock: any Clock<Duration> = PollerClock()) {
        self.limit = limit
        self.clock = clock
    }

    package func dial(_ route: Route) async throws -> Connection {
        guard case .network(let network) = route else {
            throw DialError(.noRoute, "\(route) is not a network route; plug the device in to reach it over USB")
        }
        let address = try Self.address(of: network)
        try Self.check(network, at: address)
        do {
            let socket = try await address.connect(within: limit, clock: clock)
            // A listener may have opened since the first check.
            try Self.check(network, at: address)
            SocketOption.setNoDelay(socket.number)
            return Connection(descriptor: socket, halfClose: .propagates)
        } catch let error as SocketError {
            throw Self.failure(error, address)
        }
    }

    package func plan(for route: Route) async -> ConnectPlan? {
        guard case .network(let network) = route, let address = try? Self.address(of: network) else { return nil }
        var plan = ConnectPlan(
            route: route,
            address: address,
            timeout: limit,
            timeoutError: DialError(.timedOut, "\(SocketError.timedOut(address))")
        )
        plan.reason = { failure in
            guard case .system(let code) = failure else { return nil }
            return Self.failure(.failed(call: "connect", on: "\(address)", code: code), address)
        }
        if network.registration != nil { plan.isAllowed = { !address.isOwnListener } }
        return plan
    }

    /// Refuses the route of a registration that leads to a listener of this process. Behind a tunnel or the API, the
    /// registration would have the permissions of this process.
    ///
    /// The listener may be newer than the registration, so each dial is checked.
    private static func check(_ route: NetworkRoute, at address: SocketAddress) throws(DialError) {
        guard route.registration != nil, address.isOwnListener else { return }
        throw DialError(
            .forbidden,
            "Patchbay itself listens on \(address), so the app is not there; register the app with its own port"
        )
    }

    /// Returns the socket address of a route that may be dialed.
    static func address(of route: NetworkRoute) throws(DialError) -> SocketAddress {
        let shown = "\(Route.network(route))"
        guard route.port != 0 else {
            throw DialError(.forbidden, "\(shown) has port 0, which is not a valid port; correct the port")
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
            throw DialError(.unreachable, "\(shown) is a link-local address; add its interface")
        }
        return .ipv6(number, port: port, scope: index)
    }

    /// Converts a socket error to a dial error with a hint.
    private static func failure(_ error: SocketError, _ address: SocketAddress) -> DialError {
        guard case .failed(_, _, let code) = error else {
            if case .timedOut = error { return DialError(.timedOut, "\(error)") }
            return DialError(.failed, "\(error)")
        }
        let message = SocketError.message(for: code)
        switch code {
        case ECONNREFUSED, ECONNRESET:
            return DialError(.refused, "nothing listens on \(address); start the app there, or check the port")
        case ETIMEDOUT:
            return DialError(.timedOut, "\(SocketError.timedOut(address))")
        case EHOSTUNREACH, ENETUNREACH, ENETDOWN, EHOSTDOWN, EADDRNOTAVAIL, ENODEV, EAFNOSUPPORT:
            return DialError(
                .unreachable,
                "\(address) is not reachable (\(message)); check that both machines are in the same network"
            )
        case EACCES, EPERM:
            return DialError(.forbidden, "this machine does not allow a connection to \(address); check its firewall")
        case _ where error.isExhaustion:
            return DialError(.limit, "\(error)")
        default:
            return DialError(.failed, "\(address) could not be connected to: \(message)")
        }
    }
}
