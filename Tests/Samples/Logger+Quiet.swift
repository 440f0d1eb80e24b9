package import Logging

extension Logger {
    /// A logger that drops every message.
    package static let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}
