package import Model

/// What kept one try to ask an app from its answer.
package enum Trouble: Error, Hashable, Sendable {
    /// What is wrong with the app's own secret.
    package enum Secret: Hashable, Sendable {
        /// The app wants one and none is held.
        case missing
        /// The one that is held is not accepted: the app was started again.
        case rejected
        /// The one that is held is for an earlier launch.
        case outdated
    }

    /// Nothing of the request has reached the app.
    case unreachable(DialError)
    case notApproved
    /// Another app answered on an approved route than the one that was expected there.
    case mismatch(Route, found: SanitizedText)
    case wantsSecret(Secret)
    case notPermitted(Scope)
    /// The request was delivered, the stream ended before the answer.
    case lost
    /// The request was delivered, and nothing came for so long.
    case silent(seconds: Int)
    /// Nothing was delivered, as what is there did not say for so long what it is.
    case mute(seconds: Int)
    /// An answer came and cannot be used; words that go on after "it answers with".
    case unclear(String)
    /// There is no MCP at the other end.
    case noMCP
    case busy
    /// Nothing was delivered, as a permission has changed since it was looked up.
    case outdated
}

extension Trouble {
    /// Whether it looks as if the app had gone.
    var isDeparture: Bool {
        switch self {
        case .unreachable, .lost, .wantsSecret: true
        default: false
        }
    }

    var isSilence: Bool {
        if case .silent = self { true } else { false }
    }

    /// The stream broke before the request had been written.
    static let unwritten = unreachable(DialError(.cut, "the connection ended before the request had gone out"))
}
