import Logging
import ServiceLifecycle
import UnixSignals

/// Reads the configuration again at SIGHUP. An invalid file changes nothing.
struct ConfigurationReloader: Service {
    let store: ConfigurationStore
    /// Yields each SIGHUP.
    let signals: UnixSignalsSequence
    let notifier: SystemdNotifier
    let logger: Logger
    /// Reads the file again, with the same rules as at the start. Throws `ConfigurationError`.
    let load: @Sendable () throws(ConfigurationError) -> LoadedConfiguration
    /// Applies the reloadable keys.
    let apply: @Sendable (Configuration) async -> Void

    func run() async throws {
        for await _ in signals.cancelOnGracefulShutdown() {
            notifier.reloading()
            await reload()
            notifier.ready(nil)
        }
    }

    private func reload() async {
        let loaded: LoadedConfiguration
        do { loaded = try load() } catch {
            for line in error.description.split(separator: "\n") {
                logger.error("the configuration is invalid and was not reloaded", metadata: ["error": "\(line)"])
            }
            return
        }
        let changes = await store.adopt(loaded)
        await apply(await store.effective)
        guard changes != ConfigurationStore.Changes() else {
            logger.notice("the configuration was reloaded; no key has changed")
            return
        }
        logger.notice(
            "the configuration was reloaded",
            metadata: ["changed": "\(changes.applied.isEmpty ? "no key" : changes.applied.joined(separator: ", "))"]
        )
        guard !changes.needRestart.isEmpty else { return }
        logger.warning(
            "changed keys need a restart of patchbayd",
            metadata: ["keys": "\(changes.needRestart.joined(separator: ", "))"]
        )
    }
}
