import Glibc

/// The file that a crash would leave behind, with every secret that the process had in memory.
package enum CoreDump {
    /// From here on a crash leaves none.
    ///
    /// A limit of 0 does not stop a core_pattern(5) that is a pipe, such as systemd's; a limit of 1 does (the kernel's
    /// `do_coredump`), and leaves no room for a file either.
    package static func forbid() {
        var limit = rlimit(rlim_cur: 1, rlim_max: 1)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    }
}
