import CLinux
import Glibc
import Synchronization

/// A listening socket, open from `init` until `close()` or deallocation.
///
/// A unix socket has mode 0600 unless `UnixSocketAccess` says otherwise. Its file is removed at the close unless another
/// file has replaced it.
package final class Listener: Sendable {
    /// The address of the socket, with the port chosen by the kernel if port 0 was requested.
    package let address: SocketAddress

    /// The descriptor, for an event loop. It stays open until `close()`.
    package let number: CInt

    private let owned: Mutex<Descriptor?>
    /// The file of a unix socket, at the path in `address`; nil for TCP.
    private let file: FileStatus?

    /// Binds and listens.
    ///
    /// - Parameters:
    ///   - address: Port 0 lets the kernel choose. `::` accepts IPv4 as well; other IPv6 addresses do not.
    ///   - access: The mode and the owner of the file of a unix socket.
    ///   - backlog: The length of the accept queue; net.core.somaxconn is the maximum.
    /// - Throws: `SocketError`.
    package init(on address: SocketAddress, access: UnixSocketAccess = .private, backlog: CInt = 4_096) throws {
        let socket = try address.makeSocket()
        let number = socket.number
        if case .unix(let path) = address {
            file = try Self.bind(number, to: address, path: path, access: access, backlog: backlog)
            self.address = address
        } else {
            SocketOption.setReuseAddress(number)
            if case .ipv6 = address { SocketOption.setIPv6Only(!address.isUnspecified, number) }
            try Self.check(address.withRaw { Glibc.bind(number, $0, $1) }, call: "bind", on: address)
            try Self.check(listen(number, backlog), call: "listen", on: address)
            self.address = SocketAddress.local(of: number) ?? address
            file = nil
        }
        self.number = number
        owned = Mutex(socket)
    }

    deinit { close() }

    /// Stops listening and refuses queued connections. The address is free when the call returns.
    ///
    /// No task may be in `accept()` during the call, and no method may be called afterwards. Duplicates keep listening.
    package func close() {
        owned.withLock { owned in
            guard owned != nil else { return }
            // The socket is still open, so its inode number cannot belong to another file yet.
            if let file, case .unix(let path) = address { Self.remove(file, at: path) }
            owned = nil
        }
    }

    /// Returns a second descriptor of the socket, for a server that owns its descriptor. The file still belongs to this
    /// object.
    ///
    /// - Throws: `SocketError`.
    package func duplicate() throws -> Descriptor {
        let copy = CLinux_duplicate(number)
        try SocketError.check(copy, "fcntl", on: "\(address)")
        return Descriptor(owning: copy)
    }

    /// Waits for the next connection.
    ///
    /// - Returns: A non-blocking, close-on-exec socket.
    /// - Throws: `CancellationError`; `SocketError`. With `isExhaustion` the connection stays in the queue, so the
    ///   caller must wait before the next call.
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
                continue  // An error of one connection, which has left the queue (accept(2)).
            }
        }
    }

    private static func check(_ result: CInt, call: String, on address: SocketAddress) throws {
        guard result != 0 else { return }
        throw errno == EADDRINUSE
            ? SocketError.inUse(address) : SocketError.failed(call: call, on: "\(address)", code: errno)
    }
}

/// The mode and the group of the file of a unix socket.
package struct UnixSocketAccess: Hashable, Sendable {
    package let mode: UInt32
    /// The group of the file; nil for the group of this process.
    package let group: UInt32?

    package init(mode: UInt32, group: UInt32? = nil) {
        self.mode = mode
        self.group = group
    }

    package static let `private` = UnixSocketAccess(mode: 0o600)
}

/// The file of a unix socket. The device and the inode identify it.
extension Listener {
    /// Binds and listens at a path, with the mode from the start.
    ///
    /// The socket file of a terminated process, which refuses connections, is replaced. Other files are not.
    /// - Throws: `SocketError.inUse`, `.notASocket`, `.failed`.
    private static func bind(
        _ number: CInt,
        to address: SocketAddress,
        path: String,
        access: UnixSocketAccess,
        backlog: CInt
    ) throws -> FileStatus {
        // The file gets the socket's mode minus the umask (unix_bind in the kernel). The mode is never wider, and
        // umask(2), which affects the whole process, is not needed.
        try check(fchmod(number, access.mode & ~0o077), call: "fchmod", on: address)
        return try withFolderLock(of: path) {
            try removeStaleFile(address, path)
            try check(address.withRaw { Glibc.bind(number, $0, $1) }, call: "bind", on: address)
            // The folder is still locked here: a socket that is bound but not listening looks like a stale one.
            guard access == .private || set(access, path), listen(number, backlog) == 0,
                let status = FileStatus(atPath: path, followsLinks: false)
            else {
                let code = errno
                unlink(path)
                throw SocketError.failed(call: "listen", on: path, code: code)
            }
            return status
        }
    }

    /// Sets the group and the mode before the first connection. Returns false after an error, which is in `errno`.
    private static func set(_ access: UnixSocketAccess, _ path: String) -> Bool {
        if let group = access.group, lchown(path, .max, group) != 0 { return false }
        // The umask reduces the mode of a new file.
        return chmod(path, access.mode) == 0
    }

    /// Removes the file unless another file has replaced it.
    private static func remove(_ file: FileStatus, at path: String) {
        withFolderLock(of: path) {
            let status = FileStatus(atPath: path, followsLinks: false)
            if status?.device == file.device, status?.inode == file.inode { unlink(path) }
        }
    }

    /// Removes a stale socket file.
    ///
    /// - Throws: `SocketError.inUse`, `.notASocket`, `.failed`.
    private static func removeStaleFile(_ address: SocketAddress, _ path: String) throws {
        guard let status = FileStatus(atPath: path, followsLinks: false) else { return }
        guard status.type == .socket else { throw SocketError.notASocket(path: path) }
        let probe = try address.makeSocket()
        let code = try address.startConnect(probe.number)
        // Only ECONNREFUSED means that no process listens. EAGAIN (a full queue) and EACCES do not.
        guard code == ECONNREFUSED else {
            throw SocketError.inUse(address, by: code == 0 ? SocketOption.peerListener(of: probe.number) : nil)
        }
        try check(unlink(path), call: "unlink", on: address)
    }

    /// Locks the folder, so that two brokers cannot find the same stale file and remove each other's new socket.
    ///
    /// The lock is advisory between brokers. A foreign holder delays the call only briefly.
    private static func withFolderLock<Result>(of path: String, _ body: () throws -> Result) rethrows -> Result {
        let end = path.lastIndex(of: "/") ?? path.startIndex
        let number = open(end == path.startIndex ? "/" : String(path[..<end]), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard number >= 0 else { return try body() }
        defer { Glibc.close(number) }
        var tries = 0
        while CLinux_try_lock(number) != 0, tries < 100 {
            sched_yield()
            tries += 1
        }
        return try body()
    }
}
