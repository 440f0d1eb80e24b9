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
    let targets: ReloadTargets

    func run() async throws {
        for await _ in signals.cancelOnGracefulShutdown() {
            notifier.reloading()
            notifier.ready(await reload() ?? "serving; the configuration was reloaded")
        }
    }

    /// Returns the error; nil if the file is valid.
    private func reload() async -> String? {
        let loaded: LoadedConfiguration
        do { loaded = try load() } catch {
            for line in error.description.split(separator: "\n") {
                logger.error("the configuration is invalid and was not reloaded", metadata: ["error": "\(line)"])
            }
            return "error: the configuration was not reloaded: \(error.description.prefix { $0 != "\n" })"
        }
        let changed = await store.adopt(loaded)
        let configuration = await store.effective
        for key in changed { await key.apply?(configuration, targets) }
        guard !changed.isEmpty else {
            logger.notice("the configuration was reloaded; no key has changed")
            return nil
        }
        let (applied, needRestart) = (names(changed.filter(\.isReloadable)), names(changed.filter { !$0.isReloadable }))
        logger.notice(
            "the configuration was reloaded",
            metadata: ["changed": "\(applied.isEmpty ? "no key" : applied)"]
        )
        if !needRestart.isEmpty {
            logger.warning("changed keys need a restart of patchbayd", metadata: ["keys": "\(needRestart)"])
        }
        return nil
    }

    private func names(_ keys: [ConfigurationKey]) -> String { keys.map(\.name).joined(separator: ", ") }
}
