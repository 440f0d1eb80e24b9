package import AccessControl
import FoundationEssentials
package import Logging
import Model
package import Registry
import ServiceLifecycle

/// Deletes the secrets of apps that have been absent for a day. An app that comes back later has a new secret.
package struct AbsentAppSecretCleaner: Service {
    private let registry: EndpointRegistry
    private let accessStore: AccessStore
    private let logger: Logger

    /// The retention period in seconds.
    static let retention: Double = 86_400
    private static let interval = Duration.seconds(600)

    package init(registry: EndpointRegistry, accessStore: AccessStore, logger: Logger) {
        (self.registry, self.accessStore, self.logger) = (registry, accessStore, logger)
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            repeat { await cleanUp() } while (try? await Task.sleep(for: Self.interval)) != nil
        }
    }

    private func cleanUp() async {
        for id in await accessStore.secrets.holders {
            guard Self.isGone(try? await registry.endpoint(id), at: Date()) else { continue }
            do {
                try await accessStore.secrets.delete(of: id, by: .broker, from: .broker)
                logger.info("deleted the secret of an absent app", metadata: ["id": "\(id)"])
            } catch {
                logger.error(
                    "the secret of an absent app could not be deleted",
                    metadata: ["id": "\(id)", "error": "\(error)"]
                )
            }
        }
    }

    /// True if the endpoint was absent for the retention period, or is not listed (nil).
    static func isGone(_ endpoint: Endpoint?, at now: Date) -> Bool {
        guard let endpoint else { return true }
        guard endpoint.sources.isEmpty else { return false }
        return now.timeIntervalSince(endpoint.lastSeenAt ?? endpoint.firstSeenAt) >= retention
    }
}
