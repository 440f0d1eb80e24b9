package import AccessControl
package import Logging
package import Model
package import Registry
import ServiceLifecycle

/// Stores the authentication codes that Dart VM services announce, as the secrets of their endpoints.
///
/// A code is stored after an owner approved the address of the endpoint, and replaced when the app announces another one.
package final class AuthCodeStore: Service {
    private let registry: EndpointRegistry
    private let accessStore: AccessStore
    private let logger: Logger
    /// The endpoints to check.
    private let due: AsyncStream<EndpointID>
    private let continuation: AsyncStream<EndpointID>.Continuation

    package init(registry: EndpointRegistry, accessStore: AccessStore, logger: Logger) {
        self.registry = registry
        self.accessStore = accessStore
        self.logger = logger
        (due, continuation) = AsyncStream.makeStream()
    }

    /// Stores codes until graceful shutdown or cancellation.
    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                group.addTask { [self] in await registry.follow { $0.endpoints.forEach(add) } }
                for await id in due { await store(id) }
                group.cancelAll()
            }
        }
    }

    /// Checks the endpoint of a sighting. A new code alone does not change the endpoint.
    package func observe(_ sighting: Sighting) async {
        guard sighting.authCode != nil, let endpoint = await registry.endpoint(seenAs: sighting.id) else { return }
        add(endpoint)
    }

    private func add(_ endpoint: Endpoint) {
        if endpoint.kind == .dartVM, endpoint.approval == .approved { continuation.yield(endpoint.id) }
    }

    private func store(_ id: EndpointID) async {
        guard let endpoint = try? await registry.endpoint(id), let code = await registry.authCode(of: id) else {
            return
        }
        let held = accessStore.secrets.access(to: endpoint).routes.compactMap(\.secret)
        guard !held.contains(where: { $0.reveal() == code.reveal() }) else { return }
        do {
            let secret = try EndpointSecret(code.reveal())
            try await accessStore.secrets.set(secret, of: endpoint, by: .broker, from: .broker)
        } catch {
            logger.error(
                "the authentication code of a Dart VM service could not be stored",
                metadata: ["id": "\(id)", "error": "\(error)"]
            )
        }
    }
}
