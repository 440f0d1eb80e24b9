import Logging
import Synchronization

/// Collects log lines.
final class LogLines: Sendable {
    let texts = Mutex<[String]>([])

    var logger: Logger { Logger(label: "test") { _ in Handler(lines: self) } }

    private struct Handler: LogHandler {
        let lines: LogLines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.info

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { lines.texts.withLock { $0.append("\(event.message) \(event.metadata ?? [:])") } }
    }
}
