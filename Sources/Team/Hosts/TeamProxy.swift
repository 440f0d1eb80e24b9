package import AccessControl
import Apps
package import Client
import Metrics
package import Model
import NIOHTTP1

/// Sends requests of clients to the brokers of other hosts.
package struct TeamProxy: Sendable {
    let connector: any HostConnector
    let usage: HostUsage

    package init(_ connector: any HostConnector) { self.init(connector, usage: HostUsage()) }

    init(_ connector: any HostConnector, usage: HostUsage) { (self.connector, self.usage) = (connector, usage) }

    /// Sends a request of a client, and returns the response.
    ///
    /// - Throws: `HostError`, `CancellationError`.
    package func send(
        _ request: OutgoingRequest,
        to host: HostName,
        for principal: Principal,
        within timeout: Duration = Self.standardTimeout
    ) async throws -> any HostResponse {
        let caller = principal.caller(at: host)
        let request = try request.naming(caller, at: host)
        do {
            usage.record(principal, caller, at: host)
            let response = try await connector.send(request, to: host, within: timeout)
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

    /// Returns the API of another host's broker for a client. Its errors are `HostError`, `ClientError.invalidResponse`,
    /// and `Problem` of the other broker with the name of its host.
    func broker(
        of host: HostName,
        for principal: Principal,
        within timeout: Duration = Self.standardTimeout
    ) -> HostAPI {
        HostAPI(host: host) { try await send($0, to: host, for: principal, within: timeout) }
    }

    /// Lets the broker of another host probe an endpoint.
    ///
    /// - Returns: The endpoint as this broker lists it, with the requested ID.
    /// - Throws: `HostError`, `CancellationError`; `Problem` of the other broker, with the name of its host.
    package func probe(_ id: EndpointID, on host: HostName, for principal: Principal) async throws -> Endpoint {
        try await Self.document(from: host) {
            try await broker(of: host, for: principal).probe(id.onItsHost).on(host, as: id)
        }
    }
}

/// The time limits of requests to other hosts. Another broker that hangs keeps its connections open, so only a limit ends
/// a request.
extension TeamProxy {
    /// The time limit of a request that is no call of an app, in addition to the wait that it asks for. The command
    /// line waits longer for its own broker.
    package static let standardTimeout = Duration.seconds(20)
    /// The time for the answer of the other broker after the time limit of the call.
    private static let answerMargin = Duration.seconds(5)

    /// Returns the time limit of a call of an app.
    ///
    /// - Parameters:
    ///   - timeout: The timeout of the call itself; nil for the longest one of a broker.
    ///   - wait: The wait time for an offline app, which the timeout includes.
    /// - Returns: The time without a part of the response after which the request fails.
    package static func timeout(ofCall timeout: Duration? = nil, wait: Duration = UpstreamTimeouts().wait) -> Duration {
        (timeout ?? wait + UpstreamTimeouts.longestResponse) + answerMargin
    }
}

/// The API of another host's broker, for one client of this broker.
struct HostAPI: APIClient {
    let host: HostName
    let send: @Sendable (OutgoingRequest) async throws -> any HostResponse

    /// The limits of the command line do not apply: it waits longer than its broker, and gets no larger result.
    func send(
        _ request: OutgoingRequest,
        extraTimeout: Duration,
        limit: Int
    ) async throws -> (headers: HTTPHeaders, bytes: [UInt8]) {
        let response = try await send(request)
        let bytes = try await TeamProxy.bytes(of: response, from: host)
        return (HTTPHeaders(response.headers.map { ($0.name, $0.value) }), bytes)
    }
}

extension OutgoingRequest {
    /// The request with the client of this broker that sends it.
    func naming(_ caller: TeamCaller, at host: HostName) throws(HostError) -> OutgoingRequest {
        guard let value = caller.headerValue else { throw .callerTooLarge(host) }
        var request = self
        request.headers.append((TeamCaller.header, value))
        return request
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
