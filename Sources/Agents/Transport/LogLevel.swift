import Apps

/// The severity of a log message, by MCP's names (RFC 5424, section 6.2.1).
enum LogLevel: Int, Comparable {
    case debug, info, notice, warning, error, critical, alert, emergency

    private static let names = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

    init?(_ name: String) {
        guard let index = Self.names.firstIndex(of: name) else { return nil }
        self.init(rawValue: index)
    }

    var name: String { Self.names[rawValue] }

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
