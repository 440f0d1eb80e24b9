package import Logging
package import Model
import ServiceLifecycle
package import SystemIO

/// The registry's persistent state.
package struct RegistryState: Codable, Sendable {
    package let revision: UInt64
    package let records: [PersistedEndpoint]
    package let retired: RetiredIDs?
    /// The last name of this host in a team, which IDs may still have.
    package let host: HostName?
}

/// Saves the registry after changes, so that IDs survive a restart. A client's removal is saved before its response.
///
/// After a failed write, for example on a full disk, the broker keeps running and retries.
package struct RegistryPersister: Service {
    private let registry: EndpointRegistry
    private let file: StateFile<RegistryState>
    private let logger: Logger
    /// Held during a write, so that no write replaces a later state.
    private let turn = AsyncSemaphore(permits: 1)
    /// Changes within this interval are saved together.
    static let coalescingInterval = Duration.milliseconds(200)
    /// The interval between attempts after a failed write.
    static let retryInterval = Duration.seconds(2)

    package init(_ registry: EndpointRegistry, in file: StateFile<RegistryState>, logger: Logger) {
        (self.registry, self.file, self.logger) = (registry, file, logger)
    }

    package func run() async throws {
        await registry.setPersist { _ = try await write() }
        try? await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let changes = await registry.changes().changes
                var saved = try await save()
                for await change in changes where change.revision > saved {
                    // Collects further changes for the same write.
                    try await Task.sleep(for: Self.coalescingInterval)
                    saved = try await save()
                }
                try Task.checkCancellation()
            }
        }
        do {
            _ = try await write()
        } catch {
            logger.error("the last changes of the endpoints are lost", metadata: ["reason": "\(error)"])
        }
    }

    /// Saves the state and retries until success.
    ///
    /// - Throws: `CancellationError`.
    private func save() async throws -> UInt64 {
        var isFailing = false
        while true {
            do {
                let revision = try await write()
                if isFailing { logger.notice("the endpoints are saved again") }
                return revision
            } catch {
                if !isFailing { logger.error("the endpoints cannot be saved now", metadata: ["reason": "\(error)"]) }
                isFailing = true
                // No event reports that a disk has free space again.
                try await Task.sleep(for: Self.retryInterval)
            }
        }
    }

    private func write() async throws -> UInt64 {
        let permit = try await turn.acquire()
        defer { permit.release() }
        let state = RegistryState(
            revision: await registry.revision,
            records: await registry.records,
            retired: await registry.retired,
            host: registry.hostName
        )
        try await file.write(state)
        return state.revision
    }
}
