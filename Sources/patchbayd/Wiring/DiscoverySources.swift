import API
import AccessControl
import Devices
import Discovery
import FoundationEssentials
import Glibc
import Logging
import Model
import Registry
import Tunnels

/// Where sightings come from, each of them optional.
struct DiscoverySources: Sendable {
    let bonjour: BonjourSource?
    let devices: DeviceMonitor?

    /// - Throws: `ConfigurationError.badAddress`.
    init(configuration: Configuration, environment: [String: String], logger: Logger) throws {
        bonjour =
            configuration.discovery.enabled
            ? BonjourSource(
                options: DiscoveryOptions(
                    types: configuration.discovery.types,
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
        let budget = UsbmuxConnectionLimit(limit: configuration.devices.maxStreams)
        let client: any UsbmuxClient =
            switch configuration.devices.client {
            case .native: NativeUsbmuxClient(address: address, budget: budget)
            case .libusbmuxd: LibusbmuxdClient(address: address, budget: budget)
            }
        devices = DeviceMonitor(address: address, client: client, logger: logger)
    }

    func statuses() async -> [SourceStatus] {
        [
            await bonjour?.status()
                ?? SourceStatus(name: "bonjour", state: .off, detail: "turned off by discovery.enabled = false"),
            await devices?.status()
                ?? SourceStatus(name: "usb", state: .off, detail: "turned off by devices.enabled = false"),
        ]
    }
}

/// Publishing for the doors, with Bonjour's refusals said as problems.
struct BonjourAdvertisementPublisher: AdvertisementPublisher {
    /// Nil when discovery is turned off in the configuration.
    let source: BonjourSource?

    func advertise(_ spec: AdvertisementSpec) async throws -> Advertisement {
        try await translated { try await $0.advertise(spec) }
    }

    func advertisements() async -> [Advertisement] { await source?.advertisements() ?? [] }

    func update(_ id: String, txt: TXTRecord) async throws -> Advertisement {
        try await translated { try await $0.update(id, txt: txt) }
    }

    func withdraw(_ id: String) async throws {
        try await translated { try await $0.withdraw(id) }
    }

    func changes() async -> AsyncStream<Void> {
        source?.advertisementChanges() ?? AsyncStream { $0.finish() }
    }

    private func translated<Value>(_ call: (BonjourSource) async throws -> Value) async throws -> Value {
        guard let source else {
            throw Problem(
                .unavailable,
                "Bonjour is turned off by discovery.enabled = false",
                next: "set discovery.enabled = true in the configuration, and restart the broker"
            )
        }
        do {
            return try await call(source)
        } catch let error as DiscoveryError {
            throw Problem(Self.code(of: error), error.description, next: error.next)
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
    /// How everything is now.
    init(
        of registry: EndpointRegistry,
        tunnels: TunnelTable,
        phones: AttachedDevices,
        sources: [SourceStatus],
        pairing: AccessStore,
        storage: [String],
        anyUser: Bool,
        since: Date
    ) async {
        let (endpoints, revision) = await registry.list
        var findings = await pairing.findings
        let behind = await pairing.clockBehind
        if behind > .seconds(1) {
            findings.append(
                "the clock went back by \(behind.components.seconds) s, and nothing lives longer for that; "
                    + "if it was wrong before and is right now: patchbay clock recover"
            )
        }
        let storage = storage + [await pairing.storageProblem].compactMap { $0 }
        self.init(
            version: Version.text,
            pid: getpid(),
            since: since,
            revision: revision,
            endpoints: Dictionary(grouping: endpoints, by: \.state.rawValue).mapValues(\.count),
            devices: await phones.devices().count,
            tunnels: await tunnels.list().count,
            sources: sources + (SourceStatus(of: await registry.refusals).map { [$0] } ?? []),
            findings: findings.isEmpty ? nil : findings,
            storage: storage.isEmpty ? nil : storage,
            anyUser: anyUser ? true : nil
        )
    }
}

extension SourceStatus {
    /// What the list has no room for; nil when it has room for everything.
    init?(of refusals: Refusals) {
        guard !refusals.isEmpty else { return nil }
        var losses: [String] = []
        let (crowded, beyond) = (refusals.count(by: .perAddress), refusals.count(by: .total))
        if crowded > 0 {
            losses.append("\(crowded) because one address may bring \(EndpointTable.limitPerAddress) endpoints")
        }
        if beyond > 0 { losses.append("\(beyond) because \(EndpointTable.limit) endpoints are the limit") }
        self.init(
            name: "list",
            state: .ok,
            detail: "adverts are not listed: " + losses.joined(separator: ", "),
            remedy: "see who advertises so many with `avahi-browse -art`, or narrow discovery.interfaces"
        )
    }
}
