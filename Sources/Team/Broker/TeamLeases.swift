package import AccessControl
import FoundationEssentials
package import Model
import SystemIO

/// Requests leases from the brokers of other hosts, with the routes of their API.
package struct TeamLeases: HostLeases {
    private let proxy: TeamProxy

    /// The time in which another host must answer the request for a list.
    private static let listLimit = Duration.seconds(2)

    package init(_ proxy: TeamProxy) { self.proxy = proxy }

    package func take(_ spec: LeaseSpec, on host: HostName, for principal: Principal) async throws -> Lease {
        let request = HostRequest(
            method: "POST",
            target: "/v1/leases",
            headers: [("Content-Type", "application/json")],
            body: Array(try JSONCoding.encoder().encode(spec)),
            timeout: .seconds(spec.waitSeconds ?? 0) + HostRequest.standardTimeout
        )
        let bytes = try await proxy.bytes(of: request, to: host, for: principal)
        return try TeamProxy.decode(Lease.self, bytes, from: host)
    }

    package func end(_ id: String, on host: HostName, for principal: Principal) async throws {
        guard Lease.isLocalID(id) else {
            throw Problem(.notFound, "\"\(SanitizedText(id))\" is not the ID of a lease", hint: "patchbay leases")
        }
        _ = try await proxy.bytes(
            of: HostRequest(method: "DELETE", target: "/v1/leases/\(id)"),
            to: host,
            for: principal
        )
    }

    package func list(on host: HostName, for principal: Principal) async throws -> [Lease] {
        try await list("", on: host, for: principal)
    }

    package func lease(of endpoint: EndpointID, on host: HostName, for principal: Principal) async throws -> Lease? {
        try await list("?endpoint=\(endpoint)", on: host, for: principal).first
    }

    private func list(_ query: String, on host: HostName, for principal: Principal) async throws -> [Lease] {
        let request = HostRequest(method: "GET", target: "/v1/leases\(query)")
        let bytes = try await withTimeout(Self.listLimit, clock: ContinuousClock()) { [proxy] in
            try await proxy.bytes(of: request, to: host, for: principal)
        }
        guard let bytes else { throw HostError.unreachable(host, reason: "no answer within 2 s") }
        return try TeamProxy.decode(ListResponse<Lease>.self, bytes, from: host).items
    }
}
