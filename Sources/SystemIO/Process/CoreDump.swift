import Glibc

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
