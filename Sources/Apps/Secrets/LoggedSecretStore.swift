package import AccessControl
package import Logging
package import Model
package import Registry
import ServiceLifecycle
import SystemIO

/// Stores the tokens and codes that apps write to their phone's log, as the secrets of their endpoints.
///
/// A secret is stored for the cable and for one launch: the one that is observed while the phone says that the writer of
/// the line owns the port.
package struct LoggedSecretStore: Service {
    /// Returns whether the app behind a port of a phone is the one that wrote the line.
    package typealias OwnerCheck = @Sendable (PhonePort, UDID) async -> Bool

    private struct Found: Sendable {
        let port: PhonePort
        let route: USBRoute
        let endpoint: EndpointID
    }

    /// The pauses before the attempts to observe the launch.
    private static let pauses = [Duration.zero, .seconds(1), .seconds(3)]

    private let registry: EndpointRegistry
    private let accessStore: AccessStore
    private let scanner: DevicePortScanner
    private let users: PhoneAppUsers
    private let isOwner: OwnerCheck
    private let logger: Logger
    private let found = AsyncStream.makeStream(of: Found.self)

    package init(
        registry: EndpointRegistry,
        accessStore: AccessStore,
        scanner: DevicePortScanner,
        users: PhoneAppUsers = PhoneAppUsers(),
        isOwner: @escaping OwnerCheck,
        logger: Logger
    ) {
        (self.registry, self.accessStore, self.scanner, self.users) = (registry, accessStore, scanner, users)
        (self.isOwner, self.logger) = (isOwner, logger)
    }

    /// Stores secrets until graceful shutdown or cancellation. A phone that does not answer delays only itself.
    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                for await found in found.stream { group.addTask { await store(found) } }
                group.cancelAll()
            }
        }
    }

    /// Takes the user of a sighting that the registry has applied, and the secret if its app has logged one.
    package func observe(_ sighting: Sighting) async {
        guard case .usb(let route)? = sighting.routes.first, route.udid.platform == .android,
            let endpoint = await registry.endpoint(seenAs: sighting.id)
        else { return }
        if let port = scanner.reportedPort(route) { users.observe(port, of: endpoint, on: route.udid) }
        guard let port = scanner.takeVerified(route) else { return }
        found.continuation.yield(Found(port: port, route: route, endpoint: endpoint.id))
    }

    private func store(_ found: Found) async {
        guard let text = found.port.announcement?.reveal() else { return }
        do {
            let secret = try EndpointSecret(text)
            for pause in Self.pauses {
                try await Task.sleep(for: pause)
                guard let endpoint = try? await registry.endpoint(found.endpoint) else { return }
                let held = accessStore.secrets.access(to: endpoint).routes.compactMap(\.secret)
                if held.contains(where: { $0.isEqual(to: secret) }) { return }
                if try await store(secret, found, of: endpoint) { return }
            }
            logger.debug("a logged secret belongs to no running app", metadata: ["id": "\(found.endpoint)"])
        } catch is CancellationError {} catch {
            logger.error(
                "a secret from a phone's log could not be stored",
                metadata: ["id": "\(found.endpoint)", "error": "\(error)"]
            )
        }
    }

    /// Returns false if the launch cannot be observed now, or if the port has another owner.
    private func store(_ secret: EndpointSecret, _ found: Found, of endpoint: Endpoint) async throws -> Bool {
        let route = Route.usb(found.route)
        // The observation begins before the owner is asked, so it cannot be that of an app which took the port later.
        await accessStore.secrets.observe(endpoint)
        let observation = accessStore.launches?[route]
        guard observation != nil || endpoint.kind == .dartVM, await isOwner(found.port, found.route.udid),
            await observation?.isUnbroken() ?? true
        else { return false }
        let launch = AuthorizedRoute(route, secret: secret, observation: observation)
        accessStore.secrets.recordAcceptance(of: secret, by: endpoint, over: [launch])
        try await accessStore.secrets.set(secret, of: endpoint, over: route, by: .broker, from: .broker)
        logger.info("stored the secret that an app logged", metadata: ["id": "\(endpoint.id)"])
        return true
    }
}
