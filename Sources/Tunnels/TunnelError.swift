package import Model

/// Why something could not be done to a tunnel; the description says what to do about it.
package enum TunnelError: Error, Hashable, Sendable {
    case noSuchTunnel(String)
    /// Another tunnel of ours is on that local address.
    case taken(ListenAddress, by: String)
    /// Another program is.
    case inUse(ListenAddress)
    /// The local address cannot be listened on, for a reason in words.
    case cannotListen(ListenAddress, String)
    /// The text is no address that anybody could listen on.
    case badLocal(ListenAddress, String)
    /// The target makes no sense.
    case badTarget(String)
    case tooMany(limit: Int)
    /// The state file could not be written; nothing was changed.
    case notSaved(String)
    /// The state file is there and could not be read.
    case notRead(String)
    /// The broker is being stopped.
    case stopping
}

extension TunnelError: CustomStringConvertible {
    package var description: String {
        guard let next else { return what }
        return "\(what); \(next)"
    }

    private var what: String {
        switch self {
        case .noSuchTunnel(let id): "no tunnel is called \"\(SanitizedText(id))\""
        case .taken(let local, let id): "\(local) is the address of tunnel \(id)"
        case .inUse(let local): "\(local) is in use by another program"
        case .cannotListen(let local, let reason), .badLocal(let local, let reason):
            "\(local) cannot be listened on: \(reason)"
        case .badTarget(let reason): reason
        case .tooMany(let limit): "\(limit) tunnels stand already"
        case .notSaved(let reason): "nothing was changed: \(reason)"
        case .notRead(let reason): reason
        case .stopping: "the broker is being stopped"
        }
    }

    /// The next thing to try.
    private var next: String? {
        switch self {
        case .noSuchTunnel: "`patchbay tunnels` lists them"
        case .taken(_, let id): "remove it with `patchbay tunnels rm \(id)`, or choose another address"
        case .inUse(.tcp(_, let port)):
            "choose another port or tcp:0, or see who it is with `ss -ltnp sport = :\(port)`"
        case .inUse(.unix): "choose another path, or stop that program"
        case .cannotListen(.tcp, _): "choose another local port or address, or tcp:0 for any free port"
        case .cannotListen(.unix, _): "choose another path, in a folder of your own"
        case .badLocal: "leave the address out, or give one that `ip address` shows"
        case .badTarget: "see `patchbay list` for what there is"
        case .tooMany: "remove some with `patchbay tunnels rm ID`"
        case .notSaved: "then try again"
        case .notRead: nil
        case .stopping: "try again when it is back"
        }
    }

    /// As the HTTP API says it.
    package var problem: Problem {
        let code: Problem.Code =
            switch self {
            case .noSuchTunnel: .notFound
            // One number for whatever keeps this machine from listening (`patchbay` ends with 1).
            case .taken, .inUse, .cannotListen: .conflict
            case .badLocal, .badTarget: .badRequest
            case .tooMany: .limit
            case .notSaved, .notRead, .stopping: .unavailable
            }
        return Problem(code, what, next: next)
    }
}
