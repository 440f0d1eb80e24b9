import TestSupport
import Testing

/// `patchbay lease ID -- COMMAND` with real programs.
@Suite(.scratchFolder) struct LeaseCommandTests {
    private let scratch = ScratchFolder.current

    @Test func `the command gets its signals, and its status is the exit code`() async throws {
        let broker = try await RunningBroker(in: scratch)
        _ = try await broker.ask("add", "lab", "127.0.0.1:9")

        let blocked = try await broker.ask("lease", "lab", "--", "grep", "SigBlk", "/proc/self/status")
        #expect(blocked.last?.hasSuffix("0000000000000000") == true, "\(blocked)")
        for (script, status) in [("kill -TERM $$", CInt(143)), ("kill -INT $$", 130), ("exit 3", 3)] {
            let command = try await broker.start("lease", "lab", "--", "sh", "-c", script)
            #expect(try await command.exitStatus() == .exited(status), "\(script): \(command.log)")
        }
        #expect(try await broker.ask("leases").joined().contains("lab") == false)
    }

    @Test func `a command keeps a lease that its user had before`() async throws {
        let broker = try await RunningBroker(in: scratch)
        _ = try await broker.ask("add", "lab", "127.0.0.1:9")
        _ = try await broker.ask("lease", "lab", "--for", "30m", "--note", "by hand")
        let before = try await broker.ask("leases", "--quiet")

        _ = try await broker.ask("lease", "lab", "--for", "1m", "--", "true")

        #expect(try await broker.ask("leases", "--quiet") == before)
        let lease = try await broker.ask("leases", "--json").joined(separator: "\n")
        #expect(lease.contains("by hand") && lease.contains(#/"seconds" *: *1800/#), "\(lease)")
    }
}
