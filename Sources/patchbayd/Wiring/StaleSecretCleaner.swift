import AccessControl
import FoundationEssentials
import Logging
import Model
import Registry
import ServiceLifecycle

/// Forgets the secrets of apps that have been gone for a day: whatever comes back then has a new one.
struct StaleSecretCleaner: Service {
    let registry: EndpointRegistry
    let pairing: AccessStore
    let logger: Logger
    var clock: any Clock<Duration> = ContinuousClock()

    /// In seconds.
    static let memory: Double = 86_400
    private static let pause = Duration.seconds(600)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            repeat { await look() } while (try? await clock.sleep(for: Self.pause)) != nil
        }
    }

    private func look() async {
        for id in await pairing.secretHolders {
            guard Self.isGone(try? await registry.endpoint(id), at: Date()) else { continue }
            do {
                try await pairing.forgetSecret(of: id, by: .broker, from: .broker)
                logger.info("the secret of an app that is gone is forgotten", metadata: ["id": "\(id)"])
            } catch {
                logger.error("a secret could not be forgotten", metadata: ["id": "\(id)", "error": "\(error)"])
            }
        }
    }

    /// Whether nobody has seen it for so long; nil is one that is not even listed.
    static func isGone(_ endpoint: Endpoint?, at now: Date) -> Bool {
        guard let endpoint else { return true }
        guard endpoint.sources.isEmpty else { return false }
        return now.timeIntervalSince(endpoint.lastSeen ?? endpoint.since) >= memory
    }
}
