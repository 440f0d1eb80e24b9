package import Logging

/// Limits the log lines about each client of a listener, by its address. Otherwise a client without any permission could
/// fill the log.
package final class ClientLogLimiter: Sendable {
    private static let window = Duration.seconds(60)

    private let lines = LineLimiter<String>(window: window)
    private let logger: Logger

    package init(_ logger: Logger) { self.logger = logger }

    /// Returns a logger for lines about one client, which drops the lines above the limit. `client` is the address of the
    /// client, without its port.
    package func logger(for client: String) -> Logger {
        var limited = Logger(label: logger.label) { [logger, lines] _ in
            Handler(base: logger, lines: lines, client: client)
        }
        limited.logLevel = logger.logLevel
        return limited
    }

    /// Logs the numbers of dropped lines, until cancellation.
    package func reportOmitted(clock: any Clock<Duration>) async {
        await lines.reportOmitted(clock: clock) { [logger] expired in
            for (client, count) in expired.omitted {
                logger.info("a client caused many lines", metadata: ["client": "\(client)", "not shown": "\(count)"])
            }
            if expired.beyondTotal > 0 {
                logger.info("many clients caused lines", metadata: ["not shown": "\(expired.beyondTotal)"])
            }
        }
    }

    private struct Handler: LogHandler {
        var base: Logger
        let lines: LineLimiter<String>
        let client: String

        var logLevel: Logger.Level {
            get { base.logLevel }
            set { base.logLevel = newValue }
        }
        var metadata: Logger.Metadata {
            get { base.handler.metadata }
            set { base.handler.metadata = newValue }
        }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { base[metadataKey: key] }
            set { base[metadataKey: key] = newValue }
        }

        func log(event: LogEvent) {
            guard lines.admit(client, at: .now) else { return }
            base.log(level: event.level, event.message, metadata: event.metadata)
        }
    }
}
