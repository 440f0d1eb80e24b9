import API
import Model
import Registry
import SystemIO

/// The endpoints that a person wrote down: those of the configuration, and those added since, which are kept.
actor StaticEndpoints: StaticEndpointDesk {
    private let configured: [StaticEndpoint]
    /// Where those are written; nil when there is no file.
    private let configurationFile: String?
    private var added: [StaticEndpoint]
    private let file: StateFile<[StaticEndpoint]>
    private let registry: EndpointRegistry
    private let health: StateHealth

    init(
        configured: [StaticEndpoint],
        in configurationFile: String?,
        file: StateFile<[StaticEndpoint]>,
        registry: EndpointRegistry,
        health: StateHealth
    ) async throws(StateError) {
        self.configured = configured
        self.configurationFile = configurationFile
        self.file = file
        self.registry = registry
        self.health = health
        added = try await file.read() ?? []
    }

    /// Lists all of them.
    func announce() async {
        for endpoint in configured + added { await registry.apply(.seen(Self.sighting(of: endpoint))) }
    }

    func add(_ endpoint: StaticEndpoint) async throws -> Endpoint {
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
            // What is not kept is not listed either: a restart would take it away without a word.
            added.removeAll { $0.name == endpoint.name }
            throw Problem(.unavailable, "\"\(SanitizedText(endpoint.name))\" is not added: \(error)")
        }
        let sighting = Self.sighting(of: endpoint)
        await registry.apply(.seen(sighting))
        guard let listed = await registry.endpoint(seenAs: sighting.id) else {
            throw Problem(.limit, "the registry is full; `patchbay forget` what is offline")
        }
        return listed
    }

    func remove(_ id: EndpointID) async throws -> Bool {
        for endpoint in configured {
            let sighting = Self.sighting(of: endpoint)
            guard await registry.endpoint(seenAs: sighting.id)?.id == id else { continue }
            let name = SanitizedText(endpoint.name)
            let file = configurationFile ?? "the configuration file"
            throw Problem(
                .conflict,
                "\(id) is the endpoint \"\(name)\" of \(file); take it out there and restart the broker"
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
            routes: [.lan(LANRoute(address: address, port: endpoint.port))]
        )
    }
}
