/// A network namespace with its own `/run` for the programs started in it.
///
/// The namespace has no name. A sleeping process keeps it alive.
package final class NetworkNamespace: Sendable {
    private let holder: Program
    private let scratch: ScratchFolder

    /// Creates a namespace with only the loopback interface, which is up.
    package init(in scratch: ScratchFolder) async throws {
        self.scratch = scratch
        // avahi-daemon's PID file and socket have compiled-in paths, so each daemon needs its own /run.
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

    /// The PID by which other tools refer to the namespace.
    package var processID: Int32 { holder.processID }

    /// Returns the command prefix that runs a command in the namespace.
    func commandPrefix() throws -> [String] {
        [try Executable.find("nsenter"), "--target", "\(processID)", "--net", "--mount", "--"]
    }

    @discardableResult
    package func run(_ command: String, _ arguments: [String]) async throws -> [String] {
        try await Program.run(command, arguments, in: scratch, namespace: self)
    }
}
