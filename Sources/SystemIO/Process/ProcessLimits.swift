import CLinux
import Glibc

/// The limit of open descriptors for this process (RLIMIT_NOFILE).
package struct FileDescriptorLimit: Hashable, Sendable {
    /// The limit in force.
    package let soft: UInt64
    /// The highest limit that the process can set by itself.
    package let hard: UInt64

    /// Returns the current limit.
    package static func current() throws -> FileDescriptorLimit {
        var raw = rlimit()
        try SocketError.check(CLinux_get_descriptor_limit(&raw), "getrlimit", on: "the limit of open files")
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
        try SocketError.check(CLinux_set_descriptor_limit(&raw), "setrlimit", on: "the limit of open files")
        return try current()
    }
}

/// Core dumps, which would contain every secret in the process's memory.
package enum CoreDump {
    /// Disables core dumps for this process.
    ///
    /// A limit of 0 does not stop a piped core_pattern(5) such as systemd's. A limit of 1 does (`do_coredump` in the
    /// kernel), and leaves no room for a core file.
    package static func disable() {
        var limit = rlimit(rlim_cur: 1, rlim_max: 1)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    }
}
