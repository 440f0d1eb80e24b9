import API
import AccessControl
import Apps
import FoundationEssentials
import Logging
import Model
import Registry
import ServiceLifecycle
import SystemIO
import Team

/// The parts with files in the state directory: access control, the registry, and the static endpoints.
struct StateComponents: Sendable {
    let directory: String
    let health: StateFileHealthTracker
    let accessStore: AccessStore
    /// The launches that are observed now.
    let launches = ObservedLaunches()
    /// The endpoints of this host.
    let registry: EndpointRegistry
    /// The endpoints that clients see.
    let endpoints: any EndpointListing
    /// The endpoints of the other hosts of the team.
    let remoteEndpoints: RemoteEndpoints
    /// The leases of this host.
    let leases: LeaseService
    /// The leases that clients take and see.
    let leaseAuthority: any LeaseAuthority
    let staticEndpoints: StaticEndpoints
    let registrations: RegistrationSource
    /// The services in start order: dependencies first.
    let services: [any Service]

    /// Loads the state.
    ///
    /// - Throws: `DaemonError`.
    init(_ startup: Startup, team: CurrentTeam) async throws {
        let (directory, configuration, logger) = (startup.directory, startup.configuration, startup.logger)
        let profiles = startup.profiles.profiles
        self.directory = directory
        let health = StateFileHealthTracker(of: directory)
        self.health = health
        let accessStore = try Self.openAccessStore(startup, launches: launches)
        self.accessStore = accessStore
        await accessStore.setAuditRetention(configuration.audit.retention)

        let file = StateFile<RegistryState>("endpoints", in: directory, health: health, logger: logger)
        let saved = try await DaemonError.reading { () async throws(StateError) in try await file.read() }
        // Revisions must increase across runs, also if the last ones were not saved. They therefore start at the
        // clock's milliseconds.
        let now = UInt64(max(0, Date().timeIntervalSince1970 * 1_000))
        let revision = max(now, (saved?.revision ?? 0) + 1_000)
        let name = team.running?.host
        let remoteEndpoints = RemoteEndpoints(besides: name, formerly: saved?.host, startingAfter: revision)
        let registry = EndpointRegistry(
            records: saved?.records ?? [],
            trusts: await accessStore.approvals.trusts,
            retired: saved?.retired ?? RetiredIDs(),
            abilities: Dictionary(profiles.map { ($0.kind, $0.abilities) }) { $1 },
            startingAfter: revision,
            hosts: remoteEndpoints.hosts,
            record: remoteEndpoints.record
        )
        self.registry = registry
        self.remoteEndpoints = remoteEndpoints
        endpoints = TeamEndpoints(registry, remoteEndpoints)
        let leases = LeaseService(store: accessStore, claims: team.running?.claims) { registry.linkedPhones.all }
        self.leases = leases
        leaseAuthority = TeamLeases(leases, on: remoteEndpoints.hosts, proxy: team.proxy)
        let kinds =
            EndpointKind.builtIn + profiles.map(\.kind)
            + configuration.discovery.types.map { EndpointKind(serviceType: $0) }
        let registrations = RegistrationSource(kinds: kinds) { await registry.apply($0) }
        self.registrations = registrations
        staticEndpoints = try await DaemonError.reading { () async throws(StateError) in
            try await StaticEndpoints(
                configured: configuration.endpoints,
                in: configuration.file,
                kinds: kinds,
                file: StateFile("static", in: directory, health: health, logger: logger),
                registry: registry,
                health: health
            )
        }
        services = [
            ExpirationService(of: accessStore), leases, registrations,
            AbsentAppSecretCleaner(registry: registry, accessStore: accessStore, logger: logger),
            RegistryPersister(registry, in: file, logger: logger),
        ]
    }

    private static func openAccessStore(_ startup: Startup, launches: ObservedLaunches) throws -> AccessStore {
        do {
            return try AccessStore(
                in: startup.directory,
                credentials: startup.environment["CREDENTIALS_DIRECTORY"],
                logger: startup.logger,
                launches: launches
            )
        } catch let error as AccessError {
            throw DaemonError.accessState(reason: error.description)
        }
    }
}

extension DaemonError {
    /// Converts the errors of a loading step.
    ///
    /// - Throws: `DaemonError.state` with the message of the original error.
    static func reading<Value, Failure: Error & CustomStringConvertible>(
        _ body: () async throws(Failure) -> Value
    ) async throws(DaemonError) -> Value {
        do { return try await body() } catch { throw .state(reason: error.description) }
    }
}
