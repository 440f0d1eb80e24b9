import Glibc
import Logging
import Synchronization
import SystemIO

/// The log level of the whole process, which a reload can change.
final class SharedLogLevel: Sendable {
    private let level: Mutex<Logger.Level>

    init(_ name: String) { level = Mutex(Logger.Level(rawValue: name) ?? .info) }

    var value: Logger.Level { level.withLock { $0 } }

    func set(_ name: String) {
        guard let new = Logger.Level(rawValue: name) else { return }
        level.withLock { $0 = new }
    }
}

/// Writes log entries to systemd's journal if standard error is connected to it, otherwise to standard error.
struct BrokerLogHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    private let level: SharedLogLevel
    private let journal: JournalSocket?
    private let output: StandardErrorWriter

    /// - Parameters:
    ///   - environment: The environment, for `JOURNAL_STREAM`.
    ///   - level: The shared level.
    init(environment: [String: String], level: SharedLogLevel) {
        self.init(
            journal: JournalSocket.isJournal(StandardErrorWriter.standardError.descriptor, environment)
                ? JournalSocket() : nil,
            level: level
        )
    }

    init(journal: JournalSocket?, level: SharedLogLevel, output: StandardErrorWriter = .standardError) {
        self.journal = journal
        self.level = level
        self.output = output
    }

    /// The level is shared. A logger cannot have a level of its own.
    var logLevel: Logger.Level {
        get { level.value }
        nonmutating set {}
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let fields = metadata.merging(event.metadata ?? [:]) { $1 }.sorted { $0.key < $1.key }.map { key, value in
            LogLine.Field(name: key, value: "\(value)")
        }
        let line = LogLine(message: "\(event.message)", fields: fields)
        if let journal, journal.send(line, priority: event.level.priority) { return }
        // The journal reads a priority in angle brackets from a stream (sd-daemon(3)).
        let start = journal == nil ? "\(LocalTime.now) \(event.level) patchbayd: " : "<\(event.level.priority)>"
        output.write("\(start)\(line.text)\n")
    }
}

extension Logger.Level {
    /// The priority of syslog(3).
    var priority: Int {
        switch self {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }
}
