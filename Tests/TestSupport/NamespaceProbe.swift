import FoundationEssentials
import Glibc

/// Whether this process may make the namespaces that `NetworkNamespace` makes.
enum NamespaceProbe {
    /// Why not; nil when it may. Tries it, since rights depend on capabilities, seccomp filters and sysctls alike.
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
        } catch {
            return "\(error)"
        }
    }
}
