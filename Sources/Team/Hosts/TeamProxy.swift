package import AccessControl
import Apps
import Metrics
package import Model
import NIOCore

/// Sends requests of clients to the brokers of other hosts.
package struct TeamProxy: Sendable {
    let connector: any HostConnector
    let usage = HostUsage()

    package init(_ connector: any HostConnector) { self.connector = connector }

    /// Sends a request of a client, and returns the response.
    ///
    /// - Throws: `HostError`, `CancellationError`.
    package func send(_ request: HostRequest, to host: HostName, for principal: Principal) async throws
        -> any HostResponse
    {
        let caller = principal.caller(at: host)
        guard let value = caller.headerValue else { throw HostError.callerTooLarge(host) }
        var request = request
        request.headers.append((TeamCaller.header, value))
        usage.record(principal, caller, at: host)
        do {
            let response = try await connector.send(request, to: host)
            Self.count("answered")
            return response
        } catch let error as HostError {
            switch error {
            case .responseLost, .silent, .wentOffline: Self.count("lost")
            case .unreachable, .absent, .callerTooLarge: Self.count("unreachable")
            }
            throw error
        }
    }

    private static func count(_ result: String) {
        Counter(label: MetricDefinition.hostRequests.name, dimensions: [("result", result)]).increment()
    }

    /// Sends a request of a client, and returns the complete response.
    ///
    /// - Throws: `HostError`, `CancellationError`; `Problem` of the other broker, with the name of its host.
    package func bytes(of request: HostRequest, to host: HostName, for principal: Principal) async throws -> [UInt8] {
        let response = try await send(request, to: host, for: principal)
        return try await Self.bytes(of: response, from: host)
    }

    /// Lets the broker of another host probe an endpoint.
    ///
    /// - Returns: The endpoint as this broker lists it, with the requested ID.
    /// - Throws: As `bytes(of:to:for:)`.
    package func probe(_ id: EndpointID, on host: HostName, for principal: Principal) async throws -> Endpoint {
        let request = HostRequest(method: "POST", target: "/v1/endpoints/\(id.onItsHost)/probe")
        let bytes = try await bytes(of: request, to: host, for: principal)
        return try Self.decode(Endpoint.self, bytes, from: host).on(host, as: id)
    }
}

extension Principal {
    /// The client as the broker of another host sees it.
    func caller(at host: HostName) -> TeamCaller {
        let holder = leaseHolder
        return TeamCaller(
            holder: holder.key,
            name: holder.name,
            isAgent: holder.isAgent,
            permissions: (isOwner ? .ofOwner : permissions ?? Permissions([], on: .endpoints([]))).asserted(to: host)
        )
    }
}

extension Permissions {
    /// Every permission.
    package static let ofOwner = Permissions(Set(Scope.allCases), on: .all)
}
