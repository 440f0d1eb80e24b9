package import Model

/// The reason why an operation on a tunnel failed. The description contains a hint.
package enum TunnelError: Error, Hashable, Sendable {
    case noSuchTunnel(String)
    /// Another tunnel of the broker listens on that local address.
    case taken(ListenAddress, by: String, leadsThere: Bool = false)
    /// Another program listens on that local address.
    case inUse(ListenAddress)
    /// The broker cannot listen on the local address; with the reason.
    case cannotListen(ListenAddress, String)
    /// The user who asks could not reach a unix socket at that path; with the reason, and an address that works.
    case unreachable(ListenAddress, String, instead: String)
    /// The text is not a valid address to listen on.
    case badLocal(ListenAddress, String)
    /// The target is invalid.
    case badTarget(String)
    case tooMany(limit: Int)
    /// The state file could not be written; the state is unchanged.
    case notSaved(String)
    /// The state file exists and could not be read.
    case notRead(String)
    /// The broker is stopping.
    case stopping
}

extension TunnelError: CustomStringConvertible {
    package var description: String {
        guard let hint else { return message }
        return "\(message); \(hint)"
    }

    private var message: String {
        switch self {
        case .noSuchTunnel(let id): "no tunnel is called \"\(SanitizedText(id))\""
        case .taken(let local, let id, let leadsThere):
            "\(local) is the address of tunnel \(id)"
                + (leadsThere ? ", which leads to the same target already, without this command" : "")
        case .inUse(let local): "\(local) is in use by another program"
        case .cannotListen(let local, let reason), .badLocal(let local, let reason):
            "\(local) cannot be listened on: \(reason)"
        case .unreachable(let local, let reason, _): "\(local) cannot be listened on: \(reason)"
        case .badTarget(let reason): reason
        case .tooMany(let limit): "the limit of \(limit) tunnels is reached"
        case .notSaved(let reason): "nothing was changed: \(reason)"
        case .notRead(let reason): reason
        case .stopping: "the broker is stopping"
        }
    }

    /// The hint: the next step to try.
    private var hint: String? {
        switch self {
        case .noSuchTunnel: "`patchbay tunnels` lists them"
        case .taken(_, let id, _): "remove it with `patchbay tunnels rm \(id)`, or choose another address"
        case .inUse(.tcp(_, let port)):
            "choose another port or tcp:0, or find the program with `ss -ltnp sport = :\(port)`"
        case .inUse(.unix): "choose another path, or stop that program"
        case .cannotListen(.tcp, _): "choose another local port or address, or tcp:0 for any free port"
        case .cannotListen(.unix, _): "choose another path, in a folder of your own"
        case .unreachable(_, _, let other): "listen on \(other)"
        case .badLocal: "leave the address out, or give one that `ip address` shows"
        case .badTarget: "`patchbay list` shows the endpoints"
        case .tooMany: "remove some with `patchbay tunnels rm ID`"
        case .notSaved: "then try again"
        case .notRead: nil
        case .stopping: "try again after it has restarted"
        }
    }

    /// The error as an HTTP API problem.
    package var problem: Problem {
        let code: Problem.Code =
            switch self {
            case .noSuchTunnel: .notFound
            // One code for every reason that prevents listening (`patchbay` exits with 1).
            case .taken, .inUse, .cannotListen, .unreachable: .conflict
            case .badLocal, .badTarget: .badRequest
            case .tooMany: .limit
            case .notSaved, .notRead, .stopping: .unavailable
            }
        return Problem(code, message, hint: hint)
    }
}
