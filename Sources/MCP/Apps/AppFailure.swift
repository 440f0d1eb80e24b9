package import Model

/// Why an app could not be asked.
package enum AppFailure: Error, Hashable, Sendable {
    /// Away, and not back within the time it was waited for.
    case away(EndpointID)
    /// Nobody has said yes to it, or it is somewhere else than when somebody did.
    case notApproved(EndpointID)
    /// It wants a token that the broker does not have, or has an old one.
    case needsSecret(EndpointID)
    /// The caller's grant does not reach so far.
    case notPermitted(EndpointID, Scope)
    /// It is no app that speaks MCP.
    case noTools(EndpointID)
    case tooSlow(EndpointID, seconds: Int)
    /// What it answers is no MCP.
    case unclear(EndpointID, String)
    /// The call has reached it, its answer has not reached us.
    case lostAfterDelivery(EndpointID)
    /// Too many calls at once.
    case busy(EndpointID)
}

extension AppFailure {
    /// For programs, and for the audit log.
    package var code: String {
        switch self {
        case .away: "away"
        case .notApproved: "not-approved"
        case .needsSecret: "needs-secret"
        case .notPermitted: "not-permitted"
        case .noTools: "no-tools"
        case .tooSlow: "too-slow"
        case .unclear: "unclear"
        case .lostAfterDelivery: "lost-after-delivery"
        case .busy: "busy"
        }
    }
}

extension AppFailure: CustomStringConvertible {
    /// For people and agents: what happened, and what to do next.
    package var description: String {
        switch self {
        case .away(let id):
            "\(id) is away and did not come back in time: start the app or plug the phone in, then endpoint_wait for it"
        case .notApproved(let id):
            "nobody has approved \(id) where it is now: a person types `patchbay approve \(id)`"
        case .needsSecret(let id):
            "\(id) wants its session token, which changes at every launch: run endpoint_pair, or `patchbay secret set \(id)`"
        case .notPermitted(let id, .secretUse):
            "\(id) wants its session token, and your grant may not have it shown: ask an owner for the scope secret.use on it"
        case .notPermitted(let id, let scope):
            "your grant does not reach \(id): ask an owner for the scope \(scope.rawValue) on it"
        case .noTools(let id):
            "\(id) speaks no MCP: use port_forward to reach it"
        case .tooSlow(let id, let seconds):
            "\(id) took the call and has not answered within \(seconds) s; it may still be at work (or stand at a breakpoint)"
        case .unclear(let id, let what):
            "\(id) answers with \(what): is it the server that it is listed as?"
        case .lostAfterDelivery(let id):
            "delivered, result unknown: \(id) went away after it had got the call; look at its state before you call again"
        case .busy(let id):
            "\(id) has too many calls at once: wait for one to end"
        }
    }
}
