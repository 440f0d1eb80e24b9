/// Why the broker could not start.
enum DaemonError: Error, Equatable {
    case stateDirectory(path: String, what: String)
    /// Two brokers would overwrite what the other one kept; `holder` is nil where the system does not tell.
    case stateDirectoryTaken(path: String, holder: String?)
    case socket(String)
    /// A path that cannot be what it is to be.
    case path(String)
    case activation(what: String)
    case pairing(what: String)
    /// A file of the state folder is there and cannot be read.
    case state(what: String)
}

extension DaemonError: CustomStringConvertible {
    var description: String {
        switch self {
        case .stateDirectory(let path, let what):
            "the state folder \(path) cannot be used: \(what); name another with --state-dir"
        case .stateDirectoryTaken(let path, let holder):
            "the state folder \(path) is in use by \(holder ?? "another broker"); stop that one, or name another folder "
                + "with --state-dir"
        case .socket(let what), .path(let what): what
        case .pairing(let what): "who may come in cannot be known: \(what)"
        case .state(let what): what
        case .activation(let what): "the socket that systemd passed cannot be used: \(what)"
        }
    }
}
