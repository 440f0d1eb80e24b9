/// Why the broker could not start.
enum DaemonError: Error, Equatable {
    case stateDirectory(path: String, what: String)
    case socket(String)
    case activation(what: String)
}

extension DaemonError: CustomStringConvertible {
    var description: String {
        switch self {
        case .stateDirectory(let path, let what):
            "the state folder \(path) cannot be used: \(what); name another with --state-dir"
        case .socket(let what): what
        case .activation(let what): "the socket that systemd passed cannot be used: \(what)"
        }
    }
}
