import API
import Devices
import Discovery
import Logging
import Model
import Probing
import Registry
import ServiceLifecycle
import Tunnels

/// Lets the registry hear one source, as long as both last.
struct SightingForwarder: Service {
    let registry: EndpointRegistry
    let events: AsyncStream<SightingEvent>
    let logger: Logger

    func run() async throws {
        var told: UInt64 = 0
        for await event in events.cancelOnGracefulShutdown() {
            await registry.apply(event)
            let refusals = await registry.refusals
            // Told when the number doubles, so that a flood does not fill the log.
            guard refusals.total > 2 * told, let status = SourceStatus(of: refusals) else { continue }
            told = refusals.total
            logger.warning("\(status.detail)", metadata: ["next": "\(status.remedy ?? "")"])
        }
    }
}

/// Tells the tunnels when their targets may have changed, and the phones' prober which ports apps use on the network.
struct TunnelTargetRefresher: Service {
    let registry: EndpointRegistry
    let tunnels: TunnelTable
    let ports: DevicePortScanner?

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            // The registry lets a follower go that is too slow; the list it then reads anew has everything.
            while !Task.isCancelled {
                let (_, changes) = await registry.changes()
                await settle()
                for await change in changes {
                    // Several changes at once need one look.
                    guard await registry.revision == change.revision else { continue }
                    await settle()
                }
                try Task.checkCancellation()
            }
        }
    }

    private func settle() async {
        await tunnels.reconsider()
        guard let ports else { return }
        // Only from approved adverts: others would choose the ports that are tried on every phone.
        let announced = await registry.endpoints.flatMap(\.approvedRoutes).filter { $0.route.host != nil }
        ports.learn(Set(announced.map(\.port)))
    }
}

/// Carries what happens at the cable to everybody whom it concerns.
struct DeviceEventForwarder: Service {
    let source: DeviceMonitor
    let phones: AttachedDevices
    let ports: DevicePortScanner
    let tunnels: TunnelTable
    let logger: Logger

    func run() async throws {
        var known: [UDID: Device] = [:]
        for await _ in source.events.cancelOnGracefulShutdown() {
            let devices = await source.devices()
            let attached = Dictionary(devices.map { ($0.udid, $0) }) { one, _ in one }
            for (udid, phone) in attached where known[udid] == nil { tell("phone plugged in", phone) }
            for (udid, phone) in known where attached[udid] == nil { tell("phone unplugged", phone) }
            known = attached
            await phones.set(devices)
            ports.set(phones: Set(devices.map(\.udid)))
            await tunnels.reconsider()
        }
        await phones.finish()
    }

    private func tell(_ what: Logger.Message, _ phone: Device) {
        logger.info(what, metadata: ["udid": "\(phone.udid)"])
    }
}

/// The phones that are attached, and a feed of the list for the doors.
actor AttachedDevices: DeviceDesk {
    private var list: [Device] = []
    private let followers = Broadcast<[Device]>(slow: .keepsNewest(1))

    func devices() -> [Device] { list }

    func deviceLists() -> AsyncStream<[Device]> { followers.subscribe(startingWith: list) }

    func set(_ devices: [Device]) {
        guard devices != list else { return }
        list = devices
        followers.send(devices)
    }

    func finish() {
        followers.finish()
    }
}

/// The registry, as the prober sees it. Avahi is asked again about an endpoint whose probe failed.
struct ProbedRegistry: LivenessStore {
    let registry: EndpointRegistry
    let bonjour: BonjourSource?
    let tunnels: TunnelTable
    let clients: ConnectionLimiter

    func list(ifChangedSince revision: UInt64?) async -> (endpoints: [Endpoint], revision: UInt64)? {
        await registry.list(ifChangedSince: revision)
    }

    /// A client may look at any endpoint. Without a client, those matter to which a tunnel leads.
    func watched() async -> WatchedEndpoints {
        if clients.isPresent() { return .all }
        let targets = await tunnels.list().map(\.spec.target)
        return .only(Set(targets.compactMap { if case .endpoint(let id) = $0 { id } else { nil } }))
    }

    func report(_ failure: DialError?, of id: EndpointID) async {
        await registry.report(failure, of: id)
        guard failure != nil, let bonjour, let endpoint = try? await registry.endpoint(id), endpoint.state == .suspect
        else { return }
        bonjour.lookAgain(at: endpoint.routes.map(\.route))
    }
}
