import CLinux
import Glibc

/// The resource limits of this process (setrlimit(2)).
package enum ProcessLimits {
    /// Raises the limit of open descriptors to the highest that the process can set by itself.
    ///
    /// The usual limit of 1024 is enough for about 500 connections.
    /// - Returns: The limit in force; nil if it cannot be read.
    @discardableResult
    package static func raiseDescriptors() -> UInt64? {
        var limit = rlimit()
        guard CLinux_get_descriptor_limit(&limit) == 0 else { return nil }
        let current = limit.rlim_cur
        limit.rlim_cur = limit.rlim_max
        return UInt64(CLinux_set_descriptor_limit(&limit) == 0 ? limit.rlim_max : current)
    }

    /// Disables core dumps, which would contain every secret in the process's memory.
    ///
    /// A limit of 0 does not stop a piped core_pattern(5) such as systemd's. A limit of 1 does (`do_coredump` in the
    /// kernel), and leaves no room for a core file.
    package static func disableCoreDumps() {
        var limit = rlimit(rlim_cur: 1, rlim_max: 1)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    }
}
