import CLinux
import Glibc
import SystemIO

/// The listening sockets that systemd made for us (sd_listen_fds(3)), so that callers wait while we restart.
///
/// What each is for is seen by its kind: one unix socket, and TCP sockets on loopback addresses.
struct SocketActivation: Sendable {
    /// systemd passes descriptors from here on.
    private static let first: CInt = 3

    private(set) var unix: CInt?
    private(set) var tcp: [CInt] = []

    /// Those that were passed to this process; none when it was not started so.
    ///
    /// - Throws: `DaemonError.activation`.
    init(environment: [String: String]) throws(DaemonError) {
        guard let count = environment["LISTEN_FDS"].flatMap({ Int($0) }), count > 0 else { return }
        if let pid = environment["LISTEN_PID"], Int32(pid) != getpid() { return }
        guard count <= 16 else { throw .activation(what: "\(count) were passed, one unix socket is expected") }
        for number in Self.first..<Self.first + CInt(count) { try take(number) }
    }

    private mutating func take(_ number: CInt) throws(DaemonError) {
        var accepting: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        guard getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &accepting, &length) == 0, accepting == 1 else {
            throw .activation(what: "descriptor \(number) is no listening stream socket")
        }
        switch SocketAddress.local(of: number) {
        case .unix, nil:
            guard unix == nil else { throw .activation(what: "two unix sockets were passed, one is expected") }
            unix = number
        case let address? where address.isLoopback:
            tcp.append(number)
        case let address?:
            // Plain HTTP with tokens in it is for this machine alone.
            throw .activation(what: "\(address) is not on a loopback address")
        }
        // systemd passes it blocking and across exec.
        _ = CLinux_set_nonblocking(number)
        _ = CLinux_set_close_on_exec(number)
    }
}
