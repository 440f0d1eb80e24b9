import Glibc
import SystemIO

/// The state of a Unix socket path, by connect(2) and stat(2).
struct UnixSocketStatus {
    enum State {
        case absent
        case notASocket
        /// The file exists, but no server listens.
        case dead
        case notPermitted
        case listening
    }

    let path: String

    var state: State {
        guard let status = FileStatus(atPath: path) else { return errno == EACCES ? .notPermitted : .absent }
        guard status.type == .socket else { return .notASocket }
        switch connectError {
        case 0: return .listening
        // EAGAIN means a full accept queue, so a server listens (unix(7)).
        case EAGAIN: return .listening
        case EACCES, EPERM: return .notPermitted
        case ENOENT: return .absent
        default: return .dead
        }
    }

    /// The permission bits and the owner; nil if the file does not exist.
    var access: (mode: UInt32, owner: UInt32)? {
        FileStatus(atPath: path).map { ($0.mode & 0o777, $0.owner) }
    }

    /// The errno of connect(2), or 0.
    private var connectError: CInt {
        let address = SocketAddress.unix(path: path)
        guard let socket = try? address.makeSocket() else { return errno }
        let number = socket.number
        // A path that does not fit cannot be a socket's.
        let code = try? address.withRaw { Glibc.connect(number, $0, $1) == 0 ? 0 : errno }
        return code ?? ENOENT
    }
}
