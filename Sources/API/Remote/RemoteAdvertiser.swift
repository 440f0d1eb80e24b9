package import AccessControl
package import Discovery
package import Logging
import Model
import ServiceLifecycle
import SystemIO

/// Advertises the remote listener as `_patchbay._tcp` while it listens, with the state of its pairing.
package struct RemoteAdvertiser: Service {
    private let listener: RemoteListener
    private let invites: InviteService
    private let publisher: any AdvertisementPublisher
    private let name: String
    private let logger: Logger

    package init(
        _ listener: RemoteListener,
        invites: InviteService,
        publisher: any AdvertisementPublisher,
        name: String = ServiceAdvertiser.standardName,
        logger: Logger
    ) {
        self.listener = listener
        self.invites = invites
        self.publisher = publisher
        self.name = name
        self.logger = logger
    }

    /// An advertisement of this service.
    private struct Published: Equatable {
        let id: String
        let port: UInt16
        var txt: TXTRecord
    }

    package func run() async throws {
        var published: Published?
        let changes = (listener.changes(), invites.changes())
        await withTaskGroup { group in
            let (updates, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            continuation.yield()
            group.addTask { for await _ in changes.0.cancelOnGracefulShutdown() { continuation.yield() } }
            group.addTask { for await _ in changes.1.cancelOnGracefulShutdown() { continuation.yield() } }
            for await _ in updates.cancelOnGracefulShutdown() {
                do { published = try await update(published) } catch {
                    logger.error("the remote listener is not advertised", metadata: ["reason": "\(error)"])
                    published = nil
                }
            }
            group.cancelAll()
        }
    }

    /// Brings the advertisement in line with the listener.
    private func update(_ published: Published?) async throws -> Published? {
        let status = await listener.status()
        guard status.state == .listening, let pin = status.pin, let port = await listener.address?.port else {
            if let published { try? await publisher.withdraw(published.id) }
            return nil
        }
        let txt = BrokerAdvertisement.txt(pin: pin, pair: await invites.isOpenForOthers ? .open : .closed)
        if var published, published.port == port {
            if published.txt != txt { _ = try await publisher.update(published.id, txt: txt) }
            published.txt = txt
            return published
        }
        if let published { try? await publisher.withdraw(published.id) }
        let spec = AdvertisementSpec(name: name, type: .patchbay, port: port, txt: txt)
        return Published(id: try await publisher.advertise(spec).id, port: port, txt: txt)
    }
}
