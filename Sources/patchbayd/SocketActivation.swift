import CLinux
import Glibc
import Sockets

/// The listening socket that systemd made for us (sd_listen_fds(3)), so that callers wait while we restart.
enum SocketActivation {
    /// systemd passes descriptors from here on.
    private static let first: CInt = 3

    /// The one socket passed to this process; nil when none was.
    static func listener(environment: [String: String]) throws(DaemonError) -> CInt? {
        guard let count = environment["LISTEN_FDS"].flatMap({ Int($0) }), count > 0 else { return nil }
        if let pid = environment["LISTEN_PID"], Int32(pid) != getpid() { return nil }
        guard count == 1 else { throw .activation(what: "\(count) were passed, one is expected") }
        var accepting: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        guard getsockopt(first, SOL_SOCKET, SO_ACCEPTCONN, &accepting, &length) == 0, accepting == 1 else {
            throw .activation(what: "descriptor \(first) is no listening stream socket")
        }
        // systemd passes it blocking and across exec.
        _ = CLinux_set_nonblocking(first)
        _ = CLinux_set_close_on_exec(first)
        return first
    }
}
