import CLinux
import Glibc

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
