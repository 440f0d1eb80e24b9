import TestSupport
import Testing

/// Kills the broker and the command line at system calls that change files; `make crash` tries every such call.
@Suite(.scratchFolder) struct CrashPointTests {
    private let scratch = ScratchFolder.current
    private static let script = String(#filePath.dropLast("CrashPointTests.swift".count)) + "crash.py"

    /// The first seed is always the same; `make crash` has no sample.
    @Test(.needs(.python, .compiler))
    func `a kill at any write loses nothing acknowledged, and the next start needs no person`() async throws {
        let programs = try Executable.built("patchbayd").dropLast("/patchbayd".count)
        let search = try await Program("python3", [Self.script, String(programs), "--sample", "3"], in: scratch)

        let status = try await search.exitStatus(within: .seconds(120))
        #expect(status == .exited(0), "\(search.log)")
        #expect(search.output.last == "\(3 * 8) points, 0 violations", "\(search.log)")
    }
}
