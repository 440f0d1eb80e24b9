import Glibc

/// A unix socket in the file system, as connect(2) and stat(2) see it.
struct UnixSocketStatus {
    enum State {
        case absent
        case notASocket
        /// The file is there and nobody listens: its server died.
        case dead
        case notPermitted
        case listening
    }

    let path: String

    var state: State {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return errno == EACCES ? .notPermitted : .absent }
        guard facts.st_mode & S_IFMT == S_IFSOCK else { return .notASocket }
        let flags = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(AF_UNIX, flags, 0)
        defer { close(descriptor) }
        if connected(descriptor) { return .listening }
        switch errno {
        // A full accept queue: somebody listens, and is busy (unix(7)).
        case EAGAIN: return .listening
        case EACCES, EPERM: return .notPermitted
        case ENOENT: return .absent
        default: return .dead
        }
    }

    /// The permission bits and the owner; nil when there is no file.
    var access: (mode: UInt32, owner: UInt32)? {
        var facts = stat()
        return stat(path, &facts) == 0 ? (facts.st_mode & 0o777, facts.st_uid) : nil
    }

    private func connected(_ descriptor: CInt) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let fits = withUnsafeMutableBytes(of: &address.sun_path) { room in
            guard path.utf8.count < room.count else { return false }
            room.copyBytes(from: path.utf8)
            return true
        }
        guard fits else {
            errno = ENOENT
            return false
        }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                connect(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }
}
