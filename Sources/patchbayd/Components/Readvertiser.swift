import Discovery
import Logging
import Model
import Registry
import ServiceLifecycle
import Tunnels

/// Publishes apps on a cable as Bonjour services of this machine (`discovery.readvertise`).
///
/// A service is published on the loopback interface only, and its port is a tunnel on loopback with both checks of
/// decision 5. Programs of one user find and reach the app, and nothing on the network does.
actor Readvertiser: Service {
    /// The state of the service for one app.
    private enum Progress {
        case published(Readvertisement, advertisement: String, tunnel: String)
        /// The service failed, or an owner removed its tunnel or advertisement. Nothing is published until the app goes.
        case stopped
    }

    private let registry: EndpointRegistry
    private let tunnels: TunnelTable
    private let publisher: any AdvertisementPublisher
    /// The UID of the user whose processes may connect.
    private let owner: UInt32
    private let logger: Logger
    private var progress: [EndpointID: Progress] = [:]

    init(
        registry: EndpointRegistry,
        tunnels: TunnelTable,
        publisher: any AdvertisementPublisher,
        owner: UInt32,
        logger: Logger
    ) {
        self.registry = registry
        self.tunnels = tunnels
        self.publisher = publisher
        self.owner = owner
        self.logger = logger
    }

    /// Publishes and withdraws until graceful shutdown. The sources then withdraw what is left.
    func run() async throws {
        try? await cancelWhenGracefulShutdown { [self] in
            let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await self.registry.follow { _ in continuation.yield() } }
                group.addTask {
                    repeat {
                        for await change in await self.tunnels.events() {
                            if case .removed = change { continuation.yield() }
                        }
                        continuation.yield()
                    } while !Task.isCancelled
                }
                group.addTask { for await _ in await self.publisher.advertisementChanges() { continuation.yield() } }
                for await _ in signals { await update() }
                try await group.waitForAll()
            }
        }
    }

    private func update() async {
        let services = Readvertisement.all(for: await registry.endpoints)
        let wanted = Dictionary(services.map { ($0.endpoint, $0) }) { one, _ in one }
        let tunnelIDs = Set(await tunnels.list().map(\.id))
        let advertisementIDs = Set(await publisher.advertisements().map(\.id))
        for (id, state) in progress {
            guard case .published(let service, let advertisement, let tunnel) = state else {
                if wanted[id] == nil { progress[id] = nil }
                continue
            }
            let isRemoved = !tunnelIDs.contains(tunnel) || !advertisementIDs.contains(advertisement)
            if let now = wanted[id], !isRemoved, (now.name, now.type) == (service.name, service.type) {
                if now == service { continue }
                // A failed update is tried again at the next change.
                guard (try? await publisher.update(advertisement, txt: now.txt)) != nil else { continue }
                progress[id] = .published(now, advertisement: advertisement, tunnel: tunnel)
            } else {
                try? await publisher.withdraw(advertisement)
                await tunnels.removeEphemeral([tunnel])
                progress[id] = isRemoved && wanted[id] != nil ? .stopped : nil
            }
        }
        for service in services where progress[service.endpoint] == nil {
            progress[service.endpoint] = await publish(service)
        }
    }

    private func publish(_ service: Readvertisement) async -> Progress {
        let spec = TunnelSpec(
            local: .tcp(host: nil, port: 0),
            target: .endpoint(service.endpoint),
            persistent: false
        )
        var tunnel: Tunnel?
        do {
            tunnel = try await tunnels.createEphemeral([spec], owner: owner).first
            guard let tunnel, case .tcp(_, let port)? = tunnel.listenAddresses.first else { return .stopped }
            let advertisement = try await publisher.advertise(
                AdvertisementSpec(name: service.name, type: service.type, port: port, txt: service.txt, local: true)
            )
            return .published(service, advertisement: advertisement.id, tunnel: tunnel.id)
        } catch {
            logger.warning(
                "an app on a cable is not advertised until it starts again",
                metadata: ["id": "\(service.endpoint)", "reason": "\(error)"]
            )
            if let tunnel { await tunnels.removeEphemeral([tunnel.id]) }
            return .stopped
        }
    }
}
