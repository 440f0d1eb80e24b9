import API
import Devices
import Discovery
import Logging
import Model
import Apps
import Registry
import ServiceLifecycle
import Synchronization
import Tunnels

/// Forwards the events of one source to the registry.
struct SightingForwarder: Service {
    let registry: EndpointRegistry
    let events: AsyncStream<SightingEvent>
    /// Nil if the source knows no Dart VM services.
    var authCodes: AuthCodeStore?
    /// Nil if the source knows no brokers.
    var brokers: NearbyBrokers?
    let logger: Logger

    func run() async throws {
        var loggedCount: UInt64 = 0
        for await event in events.cancelOnGracefulShutdown() {
            if await brokers?.apply(event) == true { continue }
            await registry.apply(event)
            if case .seen(let sighting) = event { await authCodes?.observe(sighting) }
            let refusals = await registry.refusals
            // Logged each time the number doubles, so that a flood does not fill the log.
            guard refusals.total > 2 * loggedCount, let status = SourceStatus(of: refusals) else { continue }
            loggedCount = refusals.total
            logger.warning("\(status.detail)", metadata: ["hint": "\(status.hint ?? "")"])
        }
    }
}

/// Refreshes the tunnels' targets after changes of the list, and adds advertised ports to the device port scanner.
struct TunnelTargetRefresher: Service {
    /// The endpoints of all hosts, because a tunnel may lead to another one.
    let list: any EndpointListing
    let registry: EndpointRegistry
    let tunnels: TunnelTable
    let ports: DevicePortScanner?

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            // The stream of a slow subscriber ends. The next subscription begins with the complete list.
            while !Task.isCancelled {
                let (_, changes) = await list.changes(after: nil)
                await refresh()
                for await change in changes {
                    // Several queued changes need only one refresh.
                    guard await list.lastChangeRevision == change.revision else { continue }
                    await refresh()
                }
                try Task.checkCancellation()
            }
        }
    }

    private func refresh() async {
        await tunnels.refreshTargets()
        guard let ports else { return }
        // Only ports of approved adverts are used. Otherwise any advert could select ports to probe on every phone.
        // A Dart VM service and an OpenAgents server must not get the requests that the scanner sends.
        let scanned = await registry.endpoints.filter { $0.kind != .dartVM && $0.kind != .openagents }
        let advertised = scanned.flatMap(\.approvedRoutes).filter { route in
            route.route.host != nil && !route.route.isInbound
        }
        ports.addPorts(Set(advertised.map(\.port)))
    }
}

/// Forwards attached and detached devices to the parts that use devices.
struct DeviceEventForwarder: Service {
    let source: DeviceDirectory
    let registry: EndpointRegistry
    let attachedDevices: AttachedDevices
    let ports: DevicePortScanner
    let tunnels: TunnelTable
    let logger: Logger

    func run() async throws {
        var known: [UDID: Device] = [:]
        for await snapshot in source.snapshots.cancelOnGracefulShutdown() {
            let devices = snapshot.devices
            let attached = Dictionary(devices.map { ($0.udid, $0) }) { one, _ in one }
            for (udid, device) in attached where known[udid] == nil { log("phone plugged in", device) }
            for (udid, device) in known where attached[udid] == nil { log("phone unplugged", device) }
            known = attached
            await registry.setDeviceNames(attached.compactMapValues(\.name))
            await attachedDevices.set(devices)
            // The ID of an endpoint contains the name of the device, so the ports are probed after the answer.
            ports.set(devices: Set(devices.map(\.udid)).subtracting(snapshot.unanswered))
            await tunnels.refreshTargets()
        }
        await attachedDevices.finish()
    }

    private func log(_ message: Logger.Message, _ device: Device) {
        logger.info(message, metadata: ["udid": "\(device.udid)"])
    }
}

/// The list of attached devices, with a stream of changes for the servers.
actor AttachedDevices: DeviceListing {
    private var list: [Device] = []
    private let phones = Mutex<Set<UDID>>([])
    private let subscribers = Broadcast<[Device]>(slow: .keepsNewest(1))

    func devices() -> [Device] { list }

    /// Returns whether a phone is attached. Fast enough for each connection.
    nonisolated func contains(_ udid: UDID) -> Bool { phones.withLock { $0.contains(udid) } }

    func deviceLists() -> AsyncStream<[Device]> { subscribers.subscribe(startingWith: list) }

    func set(_ devices: [Device]) {
        guard devices != list else { return }
        list = devices
        phones.withLock { $0 = Set(devices.map(\.udid)) }
        subscribers.send(devices)
    }

    func finish() {
        subscribers.finish()
    }
}

/// The local endpoints of the registry as `LivenessStore`. A failed probe also makes Avahi resolve the endpoint again.
struct RegistryLivenessStore: LivenessStore {
    let registry: EndpointRegistry
    let bonjour: BonjourSource?
    let tunnels: TunnelTable
    let clients: ConnectionLimiter

    func list(ifChangedSince revision: UInt64?) async -> (endpoints: [Endpoint], revision: UInt64)? {
        await registry.list(ifChangedSince: revision)
    }

    /// With a connected API client every endpoint is watched; otherwise only the targets of tunnels.
    func watched() async -> WatchedEndpoints {
        if clients.hasRecentClient() { return .all }
        let targets = await tunnels.list().map(\.spec.target)
        return .only(Set(targets.compactMap { if case .endpoint(let id) = $0 { id } else { nil } }))
    }

    /// A client that has been gone for a minute is not reported, because its end makes no probe due.
    func changes() async -> [any AsyncSequence<Void, Never> & Sendable] {
        [await registry.changes().changes.map { _ in }, await tunnels.events().map { _ in }, clients.arrivals()]
    }

    func report(_ failure: DialError?, of id: EndpointID) async {
        await registry.report(failure, of: id)
        guard failure != nil, let bonjour, let endpoint = try? await registry.endpoint(id),
            endpoint.state == .suspect
        else { return }
        bonjour.resolveAgain(at: endpoint.routes.map(\.route))
    }
}
