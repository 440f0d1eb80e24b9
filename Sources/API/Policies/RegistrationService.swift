import AccessControl
import Model
import Registry
import SystemIO
import Tunnels

/// Registers apps with their grants: lists them, stores their secrets, and ends both with the grant.
package actor RegistrationService {
    /// The reason why the broker must not dial an address from which a request came; nil if it may.
    package typealias AddressCheck = @Sendable (_ address: String) -> String?

    private let source: RegistrationSource
    private let accessStore: AccessStore
    private let registry: EndpointRegistry
    private let approvalService: ApprovalService
    private let disconnector: EndpointDisconnector
    private let addressRefusal: AddressCheck
    /// The endpoints of each grant with a registration since the start of the broker.
    private var endpoints: [String: Set<EndpointID>] = [:]

    init(
        source: RegistrationSource,
        accessStore: AccessStore,
        registry: EndpointRegistry,
        approvalService: ApprovalService,
        disconnector: EndpointDisconnector,
        addressRefusal: @escaping AddressCheck
    ) {
        self.source = source
        self.accessStore = accessStore
        self.registry = registry
        self.approvalService = approvalService
        self.disconnector = disconnector
        self.addressRefusal = addressRefusal
    }

    /// Registers an app. On return the app is listed, and the broker holds its secret.
    ///
    /// - Parameters:
    ///   - spec: The app.
    ///   - principal: The holder of the grant.
    ///   - scope: The interface of a link-local address.
    /// - Returns: The registration.
    /// - Throws: `RegistrationError`, `AccessError`, `Problem`.
    func register(
        _ spec: RegistrationSpec,
        by principal: Principal,
        scope: (name: String, index: UInt32)?
    ) async throws -> Registration {
        let grant = try Self.grant(of: principal)
        try Self.checkSelector(of: grant, for: spec)
        let secret = try spec.secret.map { try EndpointSecret($0) }
        let registrant = try registrant(of: principal, grant, scope: scope)
        try Self.checkPort(spec.port, at: registrant.address)
        try beginSession(of: grant.id)
        let entry = try await source.register(spec, from: registrant)
        guard let endpoint = await registry.endpoint(seenAs: entry.sighting.id) else {
            let limit = await registry.refusals.limit(of: entry.sighting.id)
            try? await source.end(entry.id, of: grant.id)
            if limit == .perGrant {
                throw RegistrationError.tooManyDifferent(limit: EndpointLimits.standard.perGrant)
            }
            throw Problem(.limit, "the list of endpoints is full", hint: "patchbay rm ID")
        }
        endpoints[grant.id, default: []].insert(endpoint.id)
        do {
            if let secret {
                try await approvalService.storeSecret(
                    secret,
                    of: endpoint,
                    over: entry.sighting.routes[0],
                    by: principal.actor,
                    from: principal.source
                )
            } else {
                await registry.acceptServer(of: endpoint.id)
            }
            // The grant may have ended after the end of its registrations.
            guard accessStore.live.isLive(grant.id) else {
                await endAll(of: grant.id)
                throw AccessError.refused
            }
        } catch {
            try? await source.end(entry.id, of: grant.id)
            throw error
        }
        // Other kinds have capabilities only by a profile.
        if let capabilities = spec.capabilities, !endpoint.isTunnelOnly {
            await registry.setCapabilities(capabilities.map(\.text), of: endpoint.id)
        }
        return Registration(id: entry.id, endpoint: endpoint.id)
    }

    /// Keeps a registration. Ends it instead if a listener of the broker has taken its port since.
    ///
    /// - Throws: `RegistrationError`, `Problem`.
    func heartbeat(_ id: String, by principal: Principal, scope: (name: String, index: UInt32)?) async throws {
        let grant = try Self.grant(of: principal)
        let entry = try await source.heartbeat(id, from: try registrant(of: principal, grant, scope: scope))
        do {
            for route in entry.sighting.routes { try Self.checkPort(route.port, at: route.address ?? "") }
        } catch {
            try await source.end(id, of: grant.id)
            throw error
        }
    }

    /// Ends a registration.
    ///
    /// - Throws: `RegistrationError`, `Problem`.
    func end(_ id: String, by principal: Principal) async throws {
        try await source.end(id, of: try Self.grant(of: principal).id)
    }

    /// Ends the registrations of a grant with the grant.
    ///
    /// - Throws: `AccessError.refused` if the grant has ended.
    private func beginSession(of grant: String) throws {
        guard endpoints[grant] == nil else { return }
        _ = try accessStore.live.register(under: grant) { await self.endAll(of: grant) }
        endpoints[grant] = []
    }

    /// Removes the apps of a grant from the list, and ends every use of them. The IDs stay reserved.
    private func endAll(of grant: String) async {
        await source.endAll(of: grant)
        for id in endpoints.removeValue(forKey: grant) ?? [] {
            guard let endpoint = try? await registry.endpoint(id) else { continue }
            try? await registry.remove(id)
            await disconnector.disconnect(endpoint, over: .all)
        }
    }

    /// Returns the grant with which an app registered itself; nil for every other endpoint.
    func grant(of endpoint: Endpoint) -> String? {
        guard endpoint.sources.contains(.registration) else { return nil }
        return endpoints.first { $0.value.contains(endpoint.id) }?.key
    }

    /// Throws if an endpoint is a registered app. Its approval is its registration, which ends with its grant.
    func requireNoRegistration(of endpoint: Endpoint, toDo action: String) throws(Problem) {
        guard let grant = grant(of: endpoint) else { return }
        throw Problem(
            .conflict,
            "\(endpoint.id) has registered itself with grant \(grant), so \(action)",
            hint: "patchbay revoke \(grant) ends the grant and removes its apps"
        )
    }

    private static func grant(of principal: Principal) throws(Problem) -> Grant {
        guard let grant = principal.grant else {
            throw Problem(
                .forbidden,
                "a registration belongs to a grant, and this request has none",
                hint: "patchbay pair --device"
            )
        }
        return grant
    }

    /// Throws unless the grant includes the app. The ID of the endpoint is not known before the registration.
    private static func checkSelector(of grant: Grant, for spec: RegistrationSpec) throws(Problem) {
        switch grant.permissions.selector {
        case .all: return
        case .bundles(let bundles) where bundles.contains(spec.app.text): return
        case .bundles, .endpoints, .hosts:
            throw Problem(.forbidden, "grant \(grant.id) does not include the app \(spec.app)")
        }
    }

    /// Throws if the broker itself listens on a port of this machine. The dialer checks again at each dial.
    private static func checkPort(_ port: UInt16, at address: String) throws(RegistrationError) {
        guard SocketAddress(numeric: address, port: port)?.isOwnListener == true else { return }
        throw .ownPort(port)
    }

    private func registrant(
        of principal: Principal,
        _ grant: Grant,
        scope: (name: String, index: UInt32)?
    ) throws(RegistrationError) -> RegistrationTable.Registrant {
        if let address = principal.localAddress {
            return RegistrationTable.Registrant(grant: grant.id, name: grant.name, address: address)
        }
        guard case .remote(let address) = principal.source else {
            throw .address("over this listener, only an app on this machine registers: patchbay remote on")
        }
        // A dual-stack listener shows IPv4 clients as IPv4-mapped addresses (RFC 4291, section 2.5.5.2).
        let plain = address.lowercased().hasPrefix("::ffff:") ? String(address.dropFirst(7)) : address
        if let refusal = addressRefusal(plain) { throw .address(refusal) }
        return RegistrationTable.Registrant(
            grant: grant.id,
            name: grant.name,
            address: plain,
            interface: scope?.name,
            interfaceIndex: scope?.index ?? 0
        )
    }
}

extension Principal {
    /// The loopback address of a client on this machine. Nil for a remote client and on the socket of a grant. Its
    /// clients may be in a container with a loopback interface of its own.
    fileprivate var localAddress: String? {
        switch source {
        case .unix: "127.0.0.1"
        // systemd may pass a socket on an address of the network.
        case .tcp(let address): SocketAddress(numeric: address, port: 0)?.isLoopback == true ? address : nil
        case .remote, .socket, .broker: nil
        }
    }
}
