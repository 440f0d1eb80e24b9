import FoundationEssentials

/// Where the rig's own sources are, and where it may build things that later runs use again.
enum RigFolder {
    static let sources = String(#filePath.dropLast("/RigFolder.swift".count))

    /// `.build/rig` of the package.
    static let build = String(sources.dropLast("/Tests/TestSupport".count)) + "/.build/rig"

    /// Runs a build step under a lock, since several test processes may come here at once.
    static func build(
        _ command: String,
        _ arguments: [String],
        within limit: Duration,
        in scratch: ScratchFolder
    ) async throws {
        try FileManager.default.createDirectory(atPath: build, withIntermediateDirectories: true)
        try await Program.run("flock", ["\(build)/lock", command] + arguments, in: scratch, within: limit)
    }
}
