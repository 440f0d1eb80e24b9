import CLinux
import Glibc

/// A file descriptor with exactly one owner, closed on deallocation.
///
/// The type is noncopyable, so the compiler prevents leaks and double closes. A double close could close a reused
/// number.
package struct Descriptor: ~Copyable, Sendable {
    package let number: CInt

    /// Takes ownership of an open descriptor.
    package init(owning number: CInt) { self.number = number }

    /// Opens a handle of a file (O_PATH of open(2)), which stays valid without the file's name. Nil if it fails.
    ///
    /// connect(2) reaches a socket through `/proc/self/fd`.
    package init?(handleOf path: String) {
        number = CLinux_open_handle(path)
        if number < 0 { return nil }
    }

    deinit { close(number) }

    /// Gives up ownership: the caller must close the descriptor.
    package consuming func release() -> CInt {
        let number = number
        discard self
        return number
    }

    /// Makes the close of a TCP socket send RST and discard unsent bytes. No effect on other sockets.
    package func makeAbortive() {
        var abortive = linger(l_onoff: 1, l_linger: 0)
        setsockopt(number, SOL_SOCKET, SO_LINGER, &abortive, socklen_t(MemoryLayout<linger>.size))
    }

    /// Closes the descriptor; a TCP peer receives RST.
    package consuming func reset() { makeAbortive() }
}

/// The limit of open descriptors for this process (RLIMIT_NOFILE).
package struct FileDescriptorLimit: Hashable, Sendable {
    /// The limit in force.
    package let soft: UInt64
    /// The highest limit that the process can set by itself.
    package let hard: UInt64

    /// Returns the current limit.
    package static func current() throws -> FileDescriptorLimit {
        var raw = rlimit()
        guard CLinux_get_descriptor_limit(&raw) == 0 else {
            throw SocketError.failed(call: "getrlimit", on: "the limit of open files", code: errno)
        }
        return FileDescriptorLimit(soft: UInt64(raw.rlim_cur), hard: UInt64(raw.rlim_max))
    }

    /// Raises the soft limit to the hard limit. The usual soft limit of 1024 is enough for about 500 connections.
    ///
    /// - Returns: The new limit.
    @discardableResult
    package static func raise() throws -> FileDescriptorLimit {
        let limit = try current()
        guard limit.soft < limit.hard else { return limit }
        var raw = rlimit(rlim_cur: rlim_t(limit.hard), rlim_max: rlim_t(limit.hard))
        guard CLinux_set_descriptor_limit(&raw) == 0 else {
            throw SocketError.failed(call: "setrlimit", on: "the limit of open files", code: errno)
        }
        return try current()
    }
}
