package import JSON
package import Model

/// Why an app could not be asked.
package enum AppError: Error, Hashable, Sendable {
    /// Away, and not back within the time it was waited for.
    case away(EndpointID)
    /// Nobody has said yes to it, or it is somewhere else than when somebody did.
    case notApproved(EndpointID)
    /// Another app answers where it was approved.
    case mismatch(EndpointID, found: SanitizedText)
    /// It wants a token that the broker does not have, or has an old one.
    case needsSecret(EndpointID)
    /// The caller's grant does not reach so far.
    case notPermitted(EndpointID, Scope)
    /// It is no app that speaks MCP.
    case noTools(EndpointID)
    case tooSlow(EndpointID, seconds: Int)
    /// Something takes connections there and does not say what it is.
    case mute(EndpointID, seconds: Int)
    /// What it answers is no MCP.
    case unclear(EndpointID, String)
    /// The call has reached it, its answer has not reached us.
    case lostAfterDelivery(EndpointID)
    /// Too many calls at once.
    case busy(EndpointID)
}

extension AppError {
    /// For programs, and for the audit log.
    package var code: String {
        switch self {
        case .away: "away"
        case .notApproved: "not-approved"
        case .mismatch: "changed"
        case .needsSecret: "needs-secret"
        case .notPermitted: "not-permitted"
        case .noTools: "no-tools"
        case .tooSlow: "too-slow"
        case .mute: "mute"
        case .unclear: "unclear"
        case .lostAfterDelivery: "lost-after-delivery"
        case .busy: "busy"
        }
    }
}

extension AppError {
    /// Who is told: each has other means to do something about it.
    package enum Reader: Hashable, Sendable, CaseIterable {
        /// An agent with the broker's tools.
        case agent
        /// An agent that has one app's tools and no others.
        case guest
        /// A person at a command line, or a program of theirs.
        case person
    }

    /// What to do next.
    package func next(for reader: Reader) -> String {
        switch (self, reader) {
        case (.away, .agent): "start the app or plug the phone in, then endpoint_wait for it"
        case (.away, .guest): "start the app or plug the phone in, then call again"
        case (.away, .person): "start the app or plug the phone in; `patchbay watch` shows when it is back"
        case (.notApproved(let id), .person), (.mismatch(let id, _), .person): "patchbay approve \(id)"
        case (.notApproved(let id), _), (.mismatch(let id, _), _): "a person types `patchbay approve \(id)`"
        case (.needsSecret(let id), .agent): "run endpoint_pair, or `patchbay secret set \(id)`"
        case (.needsSecret(let id), .guest): "a person types `patchbay secret set \(id)`"
        case (.needsSecret(let id), .person): "patchbay secret set \(id)"
        case (.notPermitted(_, let scope), _): "ask an owner for the scope \(scope.rawValue) on it"
        case (.noTools, .agent): "use port_forward to reach it"
        case (.noTools(let id), .guest): "a person types `patchbay forward tcp:0 --endpoint \(id)`"
        case (.noTools(let id), .person): "patchbay forward tcp:0 --endpoint \(id)"
        case (.tooSlow, .agent): "it may still be at work, or stand at a breakpoint; timeout_s gives it longer"
        case (.tooSlow, .guest): "it may still be at work, or stand at a breakpoint"
        case (.tooSlow, .person): "it may still be at work, or stand at a breakpoint; --timeout gives it longer"
        case (.mute, _): "does it stand at a breakpoint?"
        case (.unclear, _): "is it the server that it is listed as?"
        case (.lostAfterDelivery, _): "look at its state before you call again"
        case (.busy, _): "wait for one to end"
        }
    }

    /// What happened, and what this reader can do about it.
    package func sentence(for reader: Reader) -> String { "\(description): \(next(for: reader))" }

    /// Whether the app has got the call, so that it may have been carried out.
    package var isDelivered: Bool {
        switch self {
        case .tooSlow, .unclear, .lostAfterDelivery: true
        case .away, .notApproved, .mismatch, .needsSecret, .notPermitted, .noTools, .mute, .busy: false
        }
    }
}

extension AppError: CustomStringConvertible {
    /// What happened.
    package var description: String {
        switch self {
        case .away(let id):
            "\(id) is away and did not come back in time"
        case .notApproved(let id):
            "nobody has approved \(id) where it is now"
        case .mismatch(let id, let found):
            "the call was not sent: \"\(found)\" answers where \(id) was approved"
        case .needsSecret(let id):
            "\(id) wants its session token, which changes at every launch"
        case .notPermitted(let id, .secretUse):
            "\(id) wants its session token, and your grant may not have it shown"
        case .notPermitted(let id, _):
            "your grant does not reach \(id)"
        case .noTools(let id):
            "\(id) speaks no MCP"
        case .tooSlow(let id, let seconds):
            "\(id) has not answered within \(seconds) s"
        case .mute(let id, let seconds):
            "\(id) takes connections, and has not said what it is within \(seconds) s"
        case .unclear(let id, let what):
            "\(id) answers with \(what)"
        case .lostAfterDelivery(let id):
            "delivered, result unknown: \(id) went away after it had got the call"
        case .busy(let id):
            "\(id) has too many calls at once"
        }
    }
}

extension AppError {
    /// As the result of a tool that could not be called, whose text the reader is shown.
    package func result(for reader: Reader) -> JSONObject {
        AppProxy.result(saying: sentence(for: reader), code: code)
    }
}

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
