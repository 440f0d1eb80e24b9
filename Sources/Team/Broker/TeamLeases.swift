package import AccessControl
import Client
package import Model
package import Registry
import SystemIO

/// The leases of this host, and those that the brokers of other hosts grant for their own endpoints.
///
/// A client of another host gets only the leases of this host, because its own broker asks a third host itself.
package struct TeamLeases: LeaseAuthority {
    private let local: LeaseService
    private let proxy: TeamProxy
    /// The name of this host, which IDs of its leases may have.
    private let hosts: ListedHosts

    /// The time in which another host must answer the request for a list.
    private static let listLimit = Duration.seconds(2)

    package init(_ local: LeaseService, on hosts: ListedHosts, proxy: TeamProxy) {
        (self.local, self.hosts, self.proxy) = (local, hosts, proxy)
    }

    /// Takes a lease. The broker of the endpoint's host has the queue of the waiting clients.
    package func take(
        _ endpoint: Endpoint,
        for principal: Principal,
        seconds: Int,
        wait: Duration,
        note: SanitizedText?,
        renewing: String?
    ) async throws -> Lease {
        guard let host = endpoint.id.host else {
            return try await local.take(
                endpoint,
                for: principal,
                seconds: seconds,
                wait: wait,
                note: note,
                renewing: renewing
            )
        }
        guard principal.member == nil else { throw RegistryError.noSuchEndpoint(endpoint.id.text) }
        try LeaseService.checkLease(of: seconds, for: principal)
        let spec = LeaseSpec(
            endpoint: endpoint.id.onItsHost,
            seconds: seconds,
            waitSeconds: Int(wait / .seconds(1)),
            note: note,
            renew: renewing.map { Lease.parts(ofID: $0).id }
        )
        let timeout = .seconds(spec.waitSeconds ?? 0) + TeamProxy.standardTimeout
        return try await TeamProxy.document(from: host) {
            try await proxy.broker(of: host, for: principal, within: timeout).leases.take(spec).on(host)
        }
    }

    package func end(_ id: String, among endpoints: [Endpoint], by principal: Principal) async throws {
        let (number, named) = Lease.parts(ofID: id)
        guard let named, named != hosts.name, hosts.own != nil else {
            return try local.end(named == hosts.name ? number : id, among: endpoints, by: principal)
        }
        guard principal.member == nil else {
            throw AccessError.notFound("this broker has no lease \"\(SanitizedText(number)).\(named)\"")
        }
        try await end(number, on: named, for: principal)
    }

    package func release(_ endpoint: Endpoint, by principal: Principal) async {
        guard let host = endpoint.id.host else { return local.release(endpoint, by: principal) }
        guard let lease = try? await lease(of: endpoint, for: principal), lease.isOwn else { return }
        let (id, owner) = Lease.parts(ofID: lease.id)
        if owner == host { try? await end(id, on: host, for: principal) }
    }

    /// Returns the lease of an endpoint.
    ///
    /// Without a claim, the host of the endpoint is asked. It leases endpoints without a phone also while the team
    /// registry is unreachable.
    package func lease(of endpoint: Endpoint, for principal: Principal) async throws -> Lease? {
        guard endpoint.lease == nil, let host = endpoint.id.host else { return endpoint.lease }
        return try await list(of: endpoint.id.onItsHost, on: host, for: principal).first
    }

    package func held(among endpoints: [Endpoint], for principal: Principal) async -> [Lease] {
        let known = local.held(among: endpoints, for: principal)
        let others = Set(known.compactMap { Lease.parts(ofID: $0.id).host })
        let complete = await withTaskGroup(of: [Lease].self) { group -> [String: Lease] in
            for host in others {
                group.addTask { (try? await list(on: host, for: principal)) ?? [] }
            }
            var complete: [String: Lease] = [:]
            for await leases in group { for lease in leases { complete[lease.id] = lease } }
            return complete
        }
        return known.map { complete[$0.id] ?? $0 }
    }

    private func end(_ id: String, on host: HostName, for principal: Principal) async throws {
        guard Lease.isLocalID(id) else {
            throw Problem(.notFound, "\"\(SanitizedText(id))\" is not the ID of a lease", hint: "patchbay leases")
        }
        try await proxy.broker(of: host, for: principal).leases.end(id)
    }

    private func list(
        of endpoint: EndpointID? = nil,
        on host: HostName,
        for principal: Principal
    ) async throws -> [Lease] {
        let leases = try await withTimeout(Self.listLimit, clock: ContinuousClock()) { [proxy] in
            try await TeamProxy.document(from: host) {
                try await proxy.broker(of: host, for: principal).leases.list(of: endpoint)
            }
        }
        guard let leases else { throw HostError.unreachable(host, reason: "no answer within 2 s") }
        return leases.map { $0.on(host) }
    }
}
