/// The behavior of an app on the phone.
enum App: String, CaseIterable, Codable, Sendable {
    /// Receives the bytes of a `TransferRequest` and reports whether they were correct.
    case sink
    /// Sends the bytes of a `TransferRequest`.
    case source
    /// Echoes its input.
    case echo
    /// Answers each byte with two small writes, `SplitReply.gap` apart.
    case split
}
