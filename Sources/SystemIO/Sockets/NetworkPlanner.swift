import Glibc
package import Model

/// Plans streams over the network: TCP to a numeric address, for link-local addresses through their interface.
package struct NetworkPlanner: ConnectPlanner {
    private let limit: Duration

    /// - Parameter limit: The connect timeout.
    package init(limit: Duration = .seconds(5)) { self.limit = limit }

    package func plan(for route: Route) throws(DialError) -> ConnectPlan {
        guard case .network(let network) = route else {
            throw DialError(.noRoute, "\(route) is not a network route; plug the device in to reach it over USB")
        }
        let address = try Self.address(of: network)
        // Behind a tunnel or the API, a registration that leads to a listener of this process would have the permissions
        // of this process. The listener may be newer than the registration, so each connect is checked.
        let isAllowed: @Sendable () -> Bool = { !address.isOwnListener }
        return ConnectPlan(
            route: route,
            method: .socket(address),
            timeout: limit,
            isAllowed: network.registration == nil ? nil : isAllowed,
            listenerCheck: Self.listenerCheck(of: address),
            recover: { failure, _ throws(DialError) in throw Self.reason(failure, address) }
        )
    }

    /// The kernel knows the listening sockets of this machine only.
    private static func listenerCheck(of address: SocketAddress) -> ConnectPlan.ListenerCheck {
        guard address.isLoopback else { return .none }
        return .list {
            guard (try? SocketOwnerLookup().isListening(on: address)) == false else { return nil }
            return reason(.system(ECONNREFUSED), address)
        }
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

    /// Converts a failure to a dial error with a hint.
    private static func reason(_ failure: ConnectPlan.AttemptFailure, _ address: SocketAddress) -> DialError {
        switch failure {
        case .system(ECONNREFUSED), .system(ECONNRESET):
            return DialError(.refused, "nothing listens on \(address); start the app there, or check the port")
        case .system(ETIMEDOUT), .timedOut:
            return DialError(.timedOut, "\(SocketError.timedOut(address))")
        case .forbidden:
            return DialError(
                .forbidden,
                "Patchbay itself listens on \(address), so the app is not there; register the app with its own port"
            )
        case .system(EACCES), .system(EPERM):
            return DialError(.forbidden, "this machine does not allow a connection to \(address); check its firewall")
        case .system(let code):
            let error = SocketError.failed(call: "connect", on: "\(address)", code: code)
            if error.isExhaustion { return DialError(.limit, "\(error)") }
            let unreachable = [
                EHOSTUNREACH, ENETUNREACH, ENETDOWN, EHOSTDOWN, EADDRNOTAVAIL, ENODEV, EAFNOSUPPORT, EINVAL,
            ]
            guard unreachable.contains(code) else {
                return DialError(.failed, "\(address) could not be connected to: \(error.reason)")
            }
            return DialError(
                .unreachable,
                "\(address) is not reachable (\(SocketError.message(forConnect: code))); check that both machines are in the same network"
            )
        case .rejected, .refused, .closed, .noPermit:
            return DialError(.failed, "\(address) could not be connected to: \(failure)")
        }
    }
}
