/// A network of its own, with its own `/run`, for the programs that are started in it.
///
/// It has no name on the machine: one sleeping process holds it, and it is gone when that process is.
package final class NetworkNamespace: Sendable {
    private let holder: Program
    private let scratch: ScratchFolder

    /// Has nothing but the loopback interface, which is up.
    package init(in scratch: ScratchFolder) async throws {
        self.scratch = scratch
        // avahi-daemon's pid file and socket have compiled-in paths, so each daemon needs its own /run.
        holder = try await Program(
            "unshare",
            [
                "--net", "--mount", "sh", "-ec",
                "mount -t tmpfs -o mode=755 none /run; ip link set lo up; echo ready; exec sleep infinity",
            ],
            in: scratch
        )
        try await holder.waitForLine("ready")
    }

    /// What other tools call it.
    package var processID: Int32 { holder.processID }

    /// The words before a command that make it run inside.
    func entrance() throws -> [String] {
        [try Executable.find("nsenter"), "--target", "\(processID)", "--net", "--mount", "--"]
    }

    @discardableResult
    package func run(_ command: String, _ arguments: [String]) async throws -> [String] {
        try await Program.run(command, arguments, in: scratch, namespace: self)
    }
}
