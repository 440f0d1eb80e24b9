package import Model
package import SystemIO

/// The static endpoints: those of the configuration, and those added over the API, which are persistent.
package actor StaticEndpoints {
    private var configured: [StaticEndpoint]
    /// The configuration file; nil if there is none.
    private let configurationFile: String?
    /// The kinds that an added endpoint may have.
    private let kinds: [EndpointKind]
    private var added: [StaticEndpoint]
    private let file: StateFile<[StaticEndpoint]>
    private let registry: EndpointRegistry
    private let health: StateFileHealthTracker

    package init(
        configured: [StaticEndpoint],
        in configurationFile: String?,
        kinds: [EndpointKind],
        file: StateFile<[StaticEndpoint]>,
        registry: EndpointRegistry,
        health: StateFileHealthTracker
    ) async throws(StateError) {
        self.configured = configured
        self.configurationFile = configurationFile
        self.kinds = kinds
        self.file = file
        self.registry = registry
        self.health = health
        added = try await file.read() ?? []
    }

    /// Adds all static endpoints to the registry.
    package func announce() async {
        for endpoint in configured + added { await registry.apply(.seen(Self.sighting(of: endpoint))) }
    }

    /// Replaces the endpoints of the configuration after a reload. Endpoints that were added over the API stay.
    ///
    /// - Returns: The endpoints whose address is no longer configured, as they were before.
    package func replaceConfigured(_ endpoints: [StaticEndpoint]) async -> [Endpoint] {
        guard endpoints != configured else { return [] }
        var ended: [Endpoint] = []
        for old in configured where !(endpoints + added).contains(where: old.hasSameAddress(as:)) {
            if let endpoint = await registry.endpoint(seenAs: Self.sighting(of: old).id) { ended.append(endpoint) }
        }
        let removed = configured.filter { old in !endpoints.contains { $0.name == old.name } }
        configured = endpoints
        for endpoint in removed where !added.contains(where: { $0.name == endpoint.name }) {
            await registry.apply(.lost(Self.sighting(of: endpoint).id))
        }
        await announce()
        return ended
    }

    /// Saves and lists an endpoint.
    ///
    /// - Throws: `RegistryError.nameTaken`; `Problem` if its kind does not exist, or it cannot be saved or listed.
    package func add(_ endpoint: StaticEndpoint) async throws -> Endpoint {
        if let problem = endpoint.kind.validationError(among: kinds) {
            throw Problem(.badRequest, problem.message, hint: problem.nearest.map { "use the kind \($0)" })
        }
        guard !(configured + added).contains(where: { $0.name == endpoint.name }) else {
            throw RegistryError.nameTaken(endpoint.name)
        }
        if let problem = await health.problems().first {
            throw Problem(.unavailable, "\"\(SanitizedText(endpoint.name))\" is not added: \(problem)")
        }
        added.append(endpoint)
        do {
            try await file.write(added)
        } catch {
            // An endpoint that was not saved is not listed, because a restart would remove it without notice.
            added.removeAll { $0.name == endpoint.name }
            throw Problem(.unavailable, "\"\(SanitizedText(endpoint.name))\" is not added: \(error)")
        }
        let sighting = Self.sighting(of: endpoint)
        await registry.apply(.seen(sighting))
        guard let listed = await registry.endpoint(seenAs: sighting.id) else {
            throw Problem(.limit, "the registry is full; remove offline endpoints with `patchbay rm`")
        }
        return listed
    }

    /// Removes an added endpoint.
    ///
    /// - Returns: False if the ID is not a static endpoint.
    /// - Throws: `Problem` for an endpoint of the configuration, or if the change cannot be saved.
    package func remove(_ id: EndpointID) async throws -> Bool {
        for endpoint in configured {
            let sighting = Self.sighting(of: endpoint)
            guard await registry.endpoint(seenAs: sighting.id)?.id == id else { continue }
            let name = SanitizedText(endpoint.name)
            let file = configurationFile ?? "the configuration file"
            throw Problem(
                .conflict,
                "\(id) is the endpoint \"\(name)\" of \(file); remove it there and reload the broker with `systemctl reload patchbayd` or SIGHUP"
            )
        }
        for endpoint in added {
            let sighting = Self.sighting(of: endpoint)
            guard await registry.endpoint(seenAs: sighting.id)?.id == id else { continue }
            added.removeAll { $0.name == endpoint.name }
            do {
                try await file.write(added)
            } catch {
                added.append(endpoint)
                throw Problem(.unavailable, "\(id) is not removed: \(error)")
            }
            await registry.apply(.lost(sighting.id))
            return true
        }
        return false
    }

    private static func sighting(of endpoint: StaticEndpoint) -> Sighting {
        let address = endpoint.address == "localhost" ? "127.0.0.1" : endpoint.address
        return Sighting(
            id: Sighting.ID(source: .config, key: endpoint.name),
            kind: endpoint.kind,
            app: SanitizedText(endpoint.app ?? endpoint.name, limit: 155),
            appIsBundleID: endpoint.app != nil,
            name: SanitizedText(endpoint.name),
            txt: TXTRecord(items: endpoint.path.map { [Array("path=\($0)".utf8)] } ?? []),
            routes: [.network(NetworkRoute(address: address, port: endpoint.port))]
        )
    }
}

extension StaticEndpoint {
    /// Returns whether the other one is the same endpoint at the same address.
    fileprivate func hasSameAddress(as other: StaticEndpoint) -> Bool {
        (name, address, port) == (other.name, other.address, other.port)
    }
}
