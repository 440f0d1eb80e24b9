import FoundationEssentials
import Glibc

/// Checks the permission to create the namespaces of `NetworkNamespace`.
enum NamespaceProbe {
    /// The reason why namespaces cannot be created, or nil. Tries it, because permission depends on capabilities,
    /// seccomp filters and sysctls.
    static var refusal: String? {
        do {
            let words = [
                try Executable.find("unshare"), "--net", "--mount", try Executable.find("sh"), "-ec",
                "mount -t tmpfs none /run; ip link set lo up",
            ]
            let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
            defer { close(nothing) }
            let process = try Spawn.start(
                words,
                environment: ProcessInfo.processInfo.environment,
                input: nothing,
                output: nothing,
                error: nothing
            )
            var status: CInt = 0
            while waitpid(process, &status, 0) < 0, errno == EINTR {}
            return status == 0 ? nil : "network namespaces may not be made (try as root)"
        } catch { return "\(error)" }
    }
}
