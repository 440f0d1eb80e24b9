import CLinux
import Glibc

/// A file descriptor with exactly one owner, closed when the owner is done with it.
///
/// Noncopyable, so that the compiler proves what comments usually promise: nobody closes it twice (the number may belong
/// to somebody else by then), nobody forgets it.
package struct Descriptor: ~Copyable, Sendable {
    package let number: CInt

    /// Takes over an open descriptor.
    package init(owning number: CInt) { self.number = number }

    deinit { close(number) }

    /// Gives the descriptor away: the caller closes it.
    package consuming func release() -> CInt {
        let number = number
        discard self
        return number
    }

    /// Makes the coming close of a TCP socket abortive: the other end sees an error (RST) and not an orderly end, and what
    /// was not sent yet is thrown away. Nothing on other sockets.
    package func makeAbortive() {
        var abortive = linger(l_onoff: 1, l_linger: 0)
        setsockopt(number, SOL_SOCKET, SO_LINGER, &abortive, socklen_t(MemoryLayout<linger>.size))
    }

    /// Closes at once, and so that a TCP peer sees an error.
    package consuming func reset() { makeAbortive() }
}

/// How many descriptors this process may have open (RLIMIT_NOFILE).
package struct FileDescriptorLimit: Hashable, Sendable {
    /// In force now.
    package let soft: UInt64
    /// As far as the process may raise it by itself.
    package let hard: UInt64

    /// The limit as it is.
    package static func current() throws -> FileDescriptorLimit {
        var raw = rlimit()
        guard CLinux_get_descriptor_limit(&raw) == 0 else {
            throw SocketError.failed(call: "getrlimit", on: "the limit of open files", code: errno)
        }
        return FileDescriptorLimit(soft: UInt64(raw.rlim_cur), hard: UInt64(raw.rlim_max))
    }

    /// Raises the soft limit to the hard one: 1024, the usual soft limit, is about 500 connections.
    ///
    /// - Returns: The limit in force afterwards.
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
