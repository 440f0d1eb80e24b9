import Logging
import ServiceLifecycle
import UnixSignals

/// Keeps SIGHUP from ending the broker: a terminal that is closed sends it, and other daemons reload when they get it.
struct HangupNotice: Service {
    private let signals: UnixSignalsSequence
    private let logger: Logger

    /// From here on the signal ends nothing.
    init(logger: Logger) async {
        signals = await UnixSignalsSequence(trapping: .sighup)
        self.logger = logger
    }

    func run() async throws {
        for await _ in signals.cancelOnGracefulShutdown() {
            logger.notice(
                "SIGHUP is ignored: the configuration is read at the start",
                metadata: ["next": "restart patchbayd to apply a change of it"]
            )
        }
    }
}
