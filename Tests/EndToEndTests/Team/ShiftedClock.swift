import TestSupport

/// A wall clock that is ahead or behind, for one program. Its other clocks are those of the system.
struct ShiftedClock {
    private let library: String

    /// Compiles the library that shifts the clock.
    init(in scratch: ScratchFolder) async throws {
        library = scratch.file("clock.so")
        let source = "\(TestSupportFolder.package)/Tests/EndToEndTests/Team/clock_offset.c"
        try await Program.run("cc", ["-Wall", "-Werror", "-shared", "-fPIC", "-o", library, source], in: scratch)
    }

    /// Returns the words before a command whose clock is ahead by some seconds; negative ones for a clock that is behind.
    func prefix(ahead seconds: Int) -> [String] {
        ["env", "LD_PRELOAD=\(library)", "CLOCK_OFFSET=\(seconds)"]
    }
}
