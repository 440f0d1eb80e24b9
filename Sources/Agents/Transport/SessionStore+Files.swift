package import Logging
import Model
package import SystemIO

/// The files of the sessions.
extension SessionStore {
    /// Loads the MCP sessions' subscriptions of earlier runs.
    package static func load(
        in directory: String,
        health: StateFileHealthTracker,
        logger: Logger
    ) async throws(StateError) -> SessionStore {
        let file = StateFile<[PersistedSubscriptions]>("subscriptions", in: directory, health: health, logger: logger)
        let save: @Sendable ([PersistedSubscriptions]) async -> Void = { subscriptions in
            do { try await file.write(subscriptions) } catch {
                // Clients subscribe again, or poll, after the next start.
                logger.warning(
                    "MCP subscriptions could not be saved; clients must subscribe again after a restart",
                    metadata: ["reason": "\(error)"]
                )
            }
        }
        let key = try await key(in: directory, health: health, logger: logger)
        return SessionStore(key: key, persisted: try await file.read() ?? [], persist: save)
    }

    /// Loads the signing key of MCP session IDs; creates it at the first start.
    private static func key(
        in directory: String,
        health: StateFileHealthTracker,
        logger: Logger
    ) async throws(StateError) -> SessionIDSigner {
        let file = StateFile<SessionIDSigner>("sessions", in: directory, health: health, logger: logger)
        if let key = try await file.read() { return key }
        let key = SessionIDSigner()
        do { try await file.write(key) } catch {
            // The current run is not affected.
            logger.warning(
                "the MCP session key could not be saved; clients must start new sessions after a restart",
                metadata: ["reason": "\(error)"]
            )
        }
        return key
    }
}
