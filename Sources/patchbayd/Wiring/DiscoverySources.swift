import API
import AccessControl
import Devices
import Discovery
import FoundationEssentials
import Glibc
import Logging
import Model
import Registry
import SystemIO
import Tunnels

/// The sources of sightings; each is optional.
struct DiscoverySources: Sendable {
    let bonjour: BonjourSource?
    let devices: DeviceMonitor?

    /// Creates the sources enabled in the configuration.
    ///
    /// - Throws: `ConfigurationError.badAddress`.
    init(configuration: Configuration, environment: [String: String], logger: Logger) throws {
        bonjour =
            configuration.discovery.enabled
            ? BonjourSource(
                options: DiscoveryOptions(
                    types: configuration.discovery.types.filter { $0 != .patchbay } + [.patchbay],
                    allowed: configuration.discovery.interfaces,
                    denied: configuration.discovery.denyInterfaces
                ),
                logger: logger
            ) : nil
        guard configuration.devices.enabled else {
            devices = nil
            return
        }
        let address = try configuration.usbmuxdAddress(environment)
        let connectionLimit = SharedLimiter<UDID>(limit: configuration.devices.maxStreams)
        let client: any UsbmuxClient =
            switch configuration.devices.client {
            case .native: NativeUsbmuxClient(address: address, connectionLimit: connectionLimit)
            case .libusbmuxd: LibusbmuxdClient(address: address, connectionLimit: connectionLimit)
            }
        devices = DeviceMonitor(address: address, client: client, logger: logger)
    }

    func statuses() async -> [SourceStatus] {
        [
            await bonjour?.status()
                ?? SourceStatus(name: "bonjour", state: .off, detail: "turned off by discovery.enabled = false"),
            await devices?.status()
                ?? SourceStatus(name: "usbmuxd", state: .off, detail: "turned off by devices.enabled = false"),
        ]
    }
}

/// Publishes advertisements over Bonjour and converts errors to API problems.
struct BonjourAdvertisementPublisher: AdvertisementPublisher {
    /// Nil if discovery is disabled in the configuration.
    let source: BonjourSource?

    func advertise(_ spec: AdvertisementSpec) async throws -> Advertisement {
        try await convertingErrors { try await $0.advertise(spec) }
    }

    func advertisements() async -> [Advertisement] { await source?.advertisements() ?? [] }

    func update(_ id: String, txt: TXTRecord) async throws -> Advertisement {
        try await convertingErrors { try await $0.update(id, txt: txt) }
    }

    func withdraw(_ id: String) async throws {
        try await convertingErrors { try await $0.withdraw(id) }
    }

    func changes() async -> AsyncStream<Void> {
        source?.advertisementChanges() ?? AsyncStream { $0.finish() }
    }

    private func convertingErrors<Value>(_ call: (BonjourSource) async throws -> Value) async throws -> Value {
        guard let source else {
            throw Problem(
                .unavailable,
                "Bonjour is turned off by discovery.enabled = false",
                hint: "set discovery.enabled = true in the configuration, and restart the broker"
            )
        }
        do {
            return try await call(source)
        } catch let error as DiscoveryError {
            throw Problem(Self.code(of: error), error.description, hint: error.next)
        }
    }

    private static func code(of error: DiscoveryError) -> Problem.Code {
        switch error {
        case .notPublishable: .badRequest
        case .noSuchAdvertisement: .notFound
        case .tooManyAdvertisements: .limit
        case .alreadyRun: .internalError
        }
    }
}

extension BrokerStatus {
    /// Collects the current status of every part.
    init(
        of list: any EndpointListing,
        tunnels: TunnelTable,
        devices: any DeviceListing,
        sources: [SourceStatus],
        accessStore: AccessStore,
        storage: [String],
        allowAnyUser: Bool,
        remote: RemoteStatus,
        startedAt: Date
    ) async {
        let (endpoints, revision) = await list.list
        var findings = await accessStore.findings
        let lag = await accessStore.wallClockLag
        if lag > .seconds(1) {
            findings.append(
                "the clock went back by \(lag.components.seconds) s; expiry times are not extended; "
                    + "if it was wrong before and is right now: patchbay doctor --fix-clock"
            )
        }
        let storage = storage + [await accessStore.storageProblem].compactMap { $0 }
        let streams = Int(tunnels.streams.statistics.open)
        self.init(
            version: Version.text,
            pid: getpid(),
            startedAt: startedAt,
            revision: revision,
            endpoints: Dictionary(grouping: endpoints.combined, by: \.state.rawValue).mapValues(\.count),
            devices: await devices.devices().count,
            tunnels: await tunnels.list().count,
            streams: streams == 0 ? nil : streams,
            sources: sources,
            findings: findings.isEmpty ? nil : findings,
            storage: storage.isEmpty ? nil : storage,
            allowAnyUser: allowAnyUser ? true : nil,
            remote: remote,
            host: list.hosts?.own,
            hosts: list.hosts?.others
        )
    }
}

extension SourceStatus {
    /// The status of sightings rejected by the registry's limits; nil if there are none.
    init?(of refusals: RefusedSightings) {
        var causes: [String] = []
        let limits = EndpointLimits.standard
        let (perAddress, total) = (refusals.count(by: .perAddress), refusals.count(by: .total))
        if perAddress > 0 {
            causes.append(
                "\(perAddress) because the limit per address is \(limits.perAddress) endpoints without approval"
            )
        }
        if total > 0 { causes.append("\(total) because the total limit is \(limits.total) endpoints") }
        guard !causes.isEmpty else { return nil }
        self.init(
            name: "list",
            state: .ok,
            detail: "adverts are not listed: " + causes.joined(separator: ", ") + "; among them "
                + refusals.examples(3).joined(separator: ", "),
            hint: "find the advertiser with `avahi-browse -art`, or restrict discovery.interfaces"
        )
    }
}
