/// Why the bytes of a server are no HTTP answer that we take; the description goes on after "it answers with".
enum HTTPParseError: Error, Hashable, Sendable {
    case notHTTP
    case malformed(String)
    case tooLarge(limit: Int)
    /// The stream ended before the answer did.
    case unfinished
}

extension HTTPParseError: CustomStringConvertible {
    var description: String {
        switch self {
        case .notHTTP: "something that is not HTTP/1"
        case .malformed(let what): what
        case .tooLarge(let limit): "more than \(limit / 1_048_576) MiB"
        case .unfinished: "half an answer"
        }
    }
}
