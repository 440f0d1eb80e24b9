/// The reason why a message to an app has no usable response.
package enum ExchangeError: Error, Hashable, Sendable {
    /// The connection ended before the kernel accepted all bytes. No server acts on an incomplete message.
    case unwritten
    /// The app did not read for this time, so the message was not written completely.
    case blocked(seconds: Int)
    /// The permission for the message ended before its last bytes were written.
    case notPermitted
    /// The connection failed, or ended before the whole response.
    case interrupted
    /// The app did not answer in time.
    case timedOut(seconds: Int)
    case notHTTP
    /// The text continues the sentence "it answers with".
    case invalid(String)
    case tooLarge(limit: Int)
}

/// The texts of an unusable response continue the sentence "it answers with".
extension ExchangeError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unwritten: "the connection ended before the request was sent"
        case .blocked(let seconds): "the app did not read for \(seconds) s"
        case .notPermitted: "the permission has ended"
        case .interrupted: "an incomplete response"
        case .timedOut(let seconds): "no answer within \(seconds) s"
        case .notHTTP: "something that is not HTTP/1"
        case .invalid(let what): what
        case .tooLarge(let limit): "more than \(limit / 1_048_576) MiB"
        }
    }
}
