package import Model

/// Why a call to the broker did not come to its answer.
package enum ClientError: Error, Hashable, Sendable {
    /// Nobody listens at the socket.
    case brokerNotRunning(path: String)
    /// The socket is there and this user may not use it.
    case notPermitted(path: String)
    /// The text cannot be a unix socket's path.
    case unusablePath(path: String, reason: String)
    /// The broker's accept queue is full: worth trying again.
    case busy(path: String)
    /// The broker understood, and said no.
    case refused(Problem)
    /// The answer is not one that a broker of this version gives.
    case notUnderstood(what: String, detail: String)
    /// The broker said nothing for so long.
    case timedOut(what: String, seconds: Double)
    /// The connection ended in the middle of an answer.
    case connectionLost(what: String)
}

extension ClientError: CustomStringConvertible {
    /// What happened to which thing.
    package var description: String {
        switch self {
        case .brokerNotRunning(let path): "no broker listens at \(path)"
        case .notPermitted(let path): "you may not use the broker's socket \(path)"
        case .unusablePath(let path, let reason): "\"\(path)\" cannot be a socket: \(reason)"
        case .busy(let path): "the broker at \(path) has too many callers waiting"
        case .refused(let problem): problem.detail
        case .notUnderstood(let what, let detail): "\(what) was not understood: \(detail)"
        case .timedOut(let what, let seconds): "the broker did not answer \(what) for \(Self.text(seconds)) s"
        case .connectionLost(let what): "the broker closed the connection in the middle of \(what)"
        }
    }

    /// What to type or do next; nil where the broker, which said no, knows nothing either.
    package var remedy: String? {
        switch self {
        case .brokerNotRunning:
            "start it with `patchbayd` or `systemctl start patchbayd`; `patchbay doctor` looks for the reason"
        case .notPermitted: "run as the user that started the broker, or name your own broker's socket with --socket"
        case .unusablePath:
            "give --socket or $\(BrokerSocketPath.variable) the path of a broker's socket, at most 107 bytes"
        case .busy: "try again in a second"
        case .refused(let problem): problem.next
        case .notUnderstood: "check that patchbay and patchbayd are of one version with `patchbay status`"
        case .connectionLost:
            "try again; if it stays so, is this a broker's socket? The broker's log: `journalctl -u patchbayd`"
        case .timedOut: "see the broker's log with `journalctl -u patchbayd`, then try again"
        }
    }

    private static func text(_ seconds: Double) -> String {
        seconds == seconds.rounded() ? "\(Int(seconds))" : "\(seconds)"
    }
}
