/// What an app on the phone does with the streams that reach it.
enum App: String, CaseIterable, Codable, Sendable {
    /// Takes as many bytes as an `Order` says, and answers with how many it got and whether they were the right ones.
    case sink
    /// Sends as many bytes as an `Order` says.
    case source
    /// Sends back what it gets.
    case echo
    /// Answers each byte with two small writes, `SplitReply.gap` apart.
    case split
}
