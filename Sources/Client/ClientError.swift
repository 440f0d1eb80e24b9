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
    /// The text is not an ssh address.
    case invalidDestination(text: String, reason: String)
    /// The program `ssh` is not installed.
    case sshMissing
    /// ssh could not log in, or ended. `isLost` is true if it had logged in before in this process.
    case sshFailed(to: SSHDestination, reason: String, isLost: Bool)
    /// ssh logged in, and no broker listens there. Without a path, the other machine has no broker's socket.
    case noRemoteBroker(SSHDestination, path: String?)
    /// ssh logged in, and its user has no permission for the broker's socket there.
    case noRemotePermission(SSHDestination, path: String)
    /// The broker at a remote address has another key than the pinned one.
    case otherKey(address: String)
    /// The broker at a remote address refused the client's certificate.
    case keyRefused(address: String)
    /// This process no longer accepts the key of the broker at a remote address. Nothing was sent.
    case notTrusted(address: String)
    /// The machine at a remote address refused the connection.
    case noListener(address: String)
    /// No connection to a remote address was possible.
    case unreachable(address: String, reason: String)
    /// TLS to a remote address failed.
    case tlsFailed(address: String, reason: String)
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
        case .invalidDestination(let text, let reason): "\"\(text)\" is not an ssh address: \(reason)"
        case .sshMissing: "ssh is not installed on this machine"
        case .sshFailed(let destination, let reason, false): "ssh could not connect to \(destination.login): \(reason)"
        case .sshFailed(let destination, let reason, true):
            "the ssh connection to \(destination.login) was lost: \(reason)"
        case .noRemoteBroker(let destination, let path?): "no broker listens at \(path) on \(destination.login)"
        case .noRemoteBroker(let destination, nil): "no broker runs on \(destination.login)"
        case .noRemotePermission(let destination, let path):
            "\(destination.login) has no permission to use the broker's socket \(path) there"
        case .otherKey(let address):
            "the broker at \(address) has another key than the pairing string; another server may answer in its place; "
                + "nothing was sent"
        case .keyRefused(let address): "the broker at \(address) refused the key of this client"
        case .notTrusted(let address): "the broker at \(address) is not trusted any more; nothing was sent"
        case .noListener(let address): "no broker listens at \(address)"
        case .unreachable(let address, let reason): "the broker at \(address) is unreachable: \(reason)"
        case .tlsFailed(let address, let reason): "TLS with the broker at \(address) failed: \(reason)"
        }
    }

    /// The next step for the user; nil when the broker rejected the request without a hint.
    package var hint: String? {
        switch self {
        case .brokerNotRunning:
            "start it with `patchbayd` or `systemctl start patchbayd`; `patchbay doctor` finds the reason"
        case .notPermitted:
            "sudo usermod -aG patchbay \"$USER\", and log in again: members of the group patchbay may use the service; or "
                + "run as the user that started the broker"
        case .unusablePath:
            "give --socket or $\(BrokerSocketPath.variable) the path of a broker's socket, at most 107 bytes"
        case .busy: "try again in a second"
        case .refused(let problem): problem.hint
        case .invalidResponse: "check that patchbay and patchbayd have the same version with `patchbay status`"
        case .connectionLost:
            "try again; if it fails again, check that this is a broker's socket, and see `journalctl -u patchbayd`"
        case .timedOut: "see the broker's log with `journalctl -u patchbayd`, then try again"
        case .invalidDestination: "--broker ssh://user@host"
        case .sshMissing: "install it, for example with `apt install openssh-client`"
        case .sshFailed(let destination, _, let isLost):
            isLost ? "try again" : "make `\(destination.command)` work, then try again"
        case .noRemoteBroker:
            "start it on that machine with `patchbayd` or `systemctl start patchbayd`, or add its socket's path to the "
                + "address"
        case .noRemotePermission(let destination, _):
            "on that machine, sudo usermod -aG patchbay \(destination.user ?? "USER"), then log in again"
        case .otherKey:
            "compare the pin with `patchbay remote status` on that machine; if the broker has a new key, pair and join again"
        case .keyRefused: "patchbay leave NAME, then join again with a new pairing string"
        case .notTrusted: "`patchbay team status` lists the hosts of the team"
        case .noListener: "on that machine, see `patchbay remote status`; `patchbay remote on` opens the listener"
        case .unreachable: "check the network and the firewall, and `patchbay remote status` on that machine"
        case .tlsFailed: "check that the port is that of `patchbay remote status` on that machine"
        }
    }

    private static func text(_ seconds: Double) -> String {
        seconds == seconds.rounded() ? "\(Int(seconds))" : "\(seconds)"
    }
}
