import CLinux
import Glibc
import Synchronization

/// A socket that others connect to; it listens from `init` until `close()`, or until nobody holds it any more.
///
/// A unix socket is made with mode 0600 and its file is removed at the end, if it still is the one that was made.
package final class Listener: Sendable {
    /// Where it listens; a port 0 that was asked for is the one that the kernel chose.
    package let address: SocketAddress

    private let number: CInt
    private let owned: Mutex<Descriptor?>
    private let file: UnixSocketFile?

    /// Binds and listens.
    ///
    /// - Parameters:
    ///   - address: Port 0 lets the kernel choose. `::` takes IPv4 as well, every other IPv6 address does not.
    ///   - backlog: How many connections may wait to be accepted; the kernel caps it at net.core.somaxconn.
    /// - Throws: `SocketError`.
    package init(on address: SocketAddress, backlog: CInt = 4_096) throws {
        let socket = try address.makeSocket()
        let number = socket.number
        if case .unix(let path) = address {
            file = try UnixSocketFile.bind(number, to: address, path: path, backlog: backlog)
            self.address = address
        } else {
            SocketOption.setReuseAddress(number)
            if case .ipv6 = address { SocketOption.setIPv6Only(!address.isUnspecified, number) }
            try Self.check(address.withRaw { Glibc.bind(number, $0, $1) }, "bind", address)
            try Self.check(listen(number, backlog), "listen", address)
            self.address = SocketAddress.local(of: number) ?? address
            file = nil
        }
        self.number = number
        owned = Mutex(socket)
    }

    deinit { close() }

    /// Stops listening; connections that wait in the queue are refused. When it returns the address is free.
    ///
    /// Nobody may be in `accept()` then, and nobody may call anything afterwards. A duplicate goes on listening by itself.
    package func close() {
        owned.withLock { owned in
            guard owned != nil else { return }
            // While the socket is still open: its inode's number cannot be another file's yet.
            file?.remove()
            owned = nil
        }
    }

    /// A second descriptor of the same socket, for a server that wants to own one; the file goes with this object still.
    ///
    /// - Throws: `SocketError`.
    package func duplicate() throws -> Descriptor {
        let copy = CLinux_duplicate(number)
        guard copy >= 0 else { throw SocketError.failed(call: "fcntl", on: "\(address)", code: errno) }
        return Descriptor(owning: copy)
    }

    /// Waits for the next connection.
    ///
    /// - Returns: Non-blocking, closed on exec.
    /// - Throws: `CancellationError`; `SocketError`. One that `isExhaustion` leaves the connection in the queue, so the
    ///   caller waits a little before it comes again, or it would spin.
    package func accept() async throws -> Descriptor {
        while true {
            try Task.checkCancellation()
            let accepted = CLinux_accept(number)
            if accepted >= 0 { return Descriptor(owning: accepted) }
            let code = errno
            switch code {
            case EAGAIN:
                try await Poller.shared.wait(for: .readable, of: number)
            case EMFILE, ENFILE, ENOBUFS, ENOMEM, EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP:
                throw SocketError.failed(call: "accept4", on: "\(address)", code: code)
            default:
                continue  // The error of one connection, which is gone from the queue (accept(2)).
            }
        }
    }

    static func check(_ result: CInt, _ call: String, _ address: SocketAddress) throws {
        guard result != 0 else { return }
        throw errno == EADDRINUSE
            ? SocketError.inUse(address) : SocketError.failed(call: call, on: "\(address)", code: errno)
    }
}

/// The file of a unix socket that we made: its path, and what tells it from another file that took its place.
struct UnixSocketFile: Sendable {
    private let path: String
    private let device: dev_t
    private let inode: ino_t

    /// Binds and listens at a path, with mode 0600 from the first moment.
    ///
    /// A socket file that nothing answers on is what a killed program left behind, and is replaced; anything else is not.
    /// - Throws: `SocketError.inUse`, `.notASocket`, `.failed`.
    static func bind(_ number: CInt, to address: SocketAddress, path: String, backlog: CInt) throws -> UnixSocketFile {
        // The file gets the mode of the socket, less the umask (unix_bind in the kernel): no moment with a wider one, and
        // no umask(2), which would be the whole process's.
        try Listener.check(fchmod(number, 0o600), "fchmod", address)
        return try holdingFolder(of: path) {
            try clear(address, path)
            try Listener.check(address.withRaw { Glibc.bind(number, $0, $1) }, "bind", address)
            // Before the folder is let go: a socket that is bound and does not listen yet looks like a stale one.
            guard listen(number, backlog) == 0, let status = Self.status(path) else {
                let code = errno
                unlink(path)
                throw SocketError.failed(call: "listen", on: path, code: code)
            }
            return UnixSocketFile(path: path, device: status.st_dev, inode: status.st_ino)
        }
    }

    /// Removes the file unless it is another one by now.
    func remove() {
        Self.holdingFolder(of: path) {
            guard let status = Self.status(path), status.st_dev == device, status.st_ino == inode else { return }
            unlink(path)
        }
    }

    private static func clear(_ address: SocketAddress, _ path: String) throws {
        guard let status = status(path) else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else { throw SocketError.notASocket(path: path) }
        let probe = try address.makeSocket()
        let number = probe.number
        let answer = try address.withRaw { Glibc.connect(number, $0, $1) }
        // Only a refusal says that nobody listens; a full queue (EAGAIN) or a missing permission do not.
        guard answer != 0, errno == ECONNREFUSED else {
            throw SocketError.inUse(address, by: answer == 0 ? listenerProcess(behind: number) : nil)
        }
        try Listener.check(unlink(path), "unlink", address)
    }

    /// Who called listen(2) on the socket that this one is connected to (SO_PEERCRED, unix(7)).
    private static func listenerProcess(behind number: CInt) -> pid_t? {
        var process: pid_t = 0
        return CLinux_peer_process(number, &process) == 0 && process > 0 ? process : nil
    }

    private static func status(_ path: String) -> stat? {
        var status = stat()
        return lstat(path, &status) == 0 ? status : nil
    }

    /// Keeps two of us from finding the same stale file and each removing the other's fresh one.
    ///
    /// The lock is advice between brokers, so a stranger who keeps it is not waited for.
    private static func holdingFolder<Result>(of path: String, _ body: () throws -> Result) rethrows -> Result {
        let end = path.lastIndex(of: "/") ?? path.startIndex
        let number = open(end == path.startIndex ? "/" : String(path[..<end]), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard number >= 0 else { return try body() }
        defer { close(number) }
        var tries = 0
        while CLinux_try_lock(number) != 0, tries < 100 {
            sched_yield()
            tries += 1
        }
        return try body()
    }
}
