import Logging
import Model
import Registry
import ServiceLifecycle
import SystemIO

/// What a run of the broker leaves to the next one.
struct RegistryState: Codable, Sendable {
    var revision: UInt64
    var records: [PersistedEndpoint]
    var retired: RetiredIDs?
}

/// Keeps the registry's file up to date, so that ids outlive a restart.
///
/// A full disk stops nobody: the broker goes on, and what could not be written is written when there is room.
struct RegistryPersister: Service {
    let registry: EndpointRegistry
    let file: StateFile<RegistryState>
    let logger: Logger
    /// How long changes gather before they are written together.
    static let pause = Duration.milliseconds(200)
    /// Between two tries to write.
    static let retryPause = Duration.seconds(2)

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let (_, changes) = await registry.changes()
                var saved = try await save()
                for await change in changes where change.revision > saved {
                    // Not a wait for something: what comes within the pause is written with it.
                    try await Task.sleep(for: Self.pause)
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

    /// Tries until it is done.
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
                // No event tells that a disk has room again.
                try await Task.sleep(for: Self.retryPause)
            }
        }
    }

    private func write() async throws -> UInt64 {
        let state = RegistryState(
            revision: await registry.revision,
            records: await registry.records,
            retired: await registry.retired
        )
        try await file.write(state)
        return state.revision
    }
}
