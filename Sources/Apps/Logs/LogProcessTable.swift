import Model

/// The processes whose lines a reader of an app's log has seen, so that each new one is told once.
struct LogProcessTable: Sendable {
    /// The maximum number of remembered processes. An app that starts more of them is told about fewer.
    private static let limit = 64

    private let app: SanitizedText
    private var known: Set<UInt32>

    /// - Parameters:
    ///   - app: The name of the app.
    ///   - lines: The past lines that the reader gets.
    init(of app: SanitizedText, after lines: [RawPhoneLogLine]) {
        self.app = app
        known = Set(lines.map(\.processID))
    }

    /// Adds a note before the first line of each new process. The first process of all is not new.
    mutating func noting(_ events: [PhoneLogEvent<RawPhoneLogLine>]) -> [PhoneLogEvent<RawPhoneLogLine>] {
        events.flatMap { event -> [PhoneLogEvent<RawPhoneLogLine>] in
            guard case .line(let line) = event, known.count < Self.limit, known.insert(line.processID).inserted,
                known.count > 1
            else { return [event] }
            return [.note("\(app) has started as process \(line.processID)"), event]
        }
    }
}
