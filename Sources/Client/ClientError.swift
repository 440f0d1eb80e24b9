package import Model

/// A failure of a request to the broker.
package enum ClientError: Error, Hashable, Sendable {
    /// No process listens on the socket.
    case brokerNotRunning(path: String)
    /// The socket exists, but this user has no permission for it.
    case notPermitted(path: String)
    /// The text cannot be the path of a unix socket.
    case unusablePath(path: String, reason: String)
    /// The broker's accept queue is full. A retry may succeed.
    case busy(path: String)
    /// The broker rejected the request.
    case refused(Problem)
    /// A broker of this version does not send this response.
    case invalidResponse(what: String, detail: String)
    /// The broker sent nothing for this number of seconds.
    case timedOut(what: String, seconds: Double)
    /// The connection closed before the response was complete.
    case connectionLost(what: String)
}

extension ClientError: CustomStringConvertible {
    /// The error message: the failed operation and its object.
    package var description: String {
        switch self {
        case .brokerNotRunning(let path): "no broker listens at \(path)"
        case .notPermitted(let path): "no permission to use the broker's socket \(path)"
        case .unusablePath(let path, let reason): "\"\(path)\" cannot be a socket: \(reason)"
        case .busy(let path): "the broker at \(path) has too many waiting clients"
        case .refused(let problem): problem.detail
        case .invalidResponse(let what, let detail): "\(what) is not valid: \(detail)"
        case .timedOut(let what, let seconds): "the broker did not answer \(what) for \(Self.text(seconds)) s"
        case .connectionLost(let what): "the broker closed the connection during \(what)"
        }
    }

    /// The next step for the user; nil when the broker rejected the request without a hint.
    package var hint: String? {
        switch self {
        case .brokerNotRunning:
            "start it with `patchbayd` or `systemctl start patchbayd`; `patchbay doctor` finds the reason"
        case .notPermitted: "run as the user that started the broker, or name your own broker's socket with --socket"
        case .unusablePath:
            "give --socket or $\(BrokerSocketPath.variable) the path of a broker's socket, at most 107 bytes"
        case .busy: "try again in a second"
        case .refused(let problem): problem.hint
        case .invalidResponse: "check that patchbay and patchbayd have the same version with `patchbay status`"
        case .connectionLost:
            "try again; if it fails again, check that this is a broker's socket, and see `journalctl -u patchbayd`"
        case .timedOut: "see the broker's log with `journalctl -u patchbayd`, then try again"
        }
    }

    private static func text(_ seconds: Double) -> String {
        seconds == seconds.rounded() ? "\(Int(seconds))" : "\(seconds)"
    }
}
