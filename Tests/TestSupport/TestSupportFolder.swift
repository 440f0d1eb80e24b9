import FoundationEssentials

/// The folders of the test support's sources and of its build products, which later runs reuse.
package enum TestSupportFolder {
    package static let sources = String(#filePath.dropLast("/TestSupportFolder.swift".count))

    /// The folder of the package.
    package static let package = String(sources.dropLast("/Tests/TestSupport".count))

    /// The folder `.build/rig` of the package.
    static let build = "\(package)/.build/rig"

    /// Runs a build step under a lock, because several test processes may run it at once.
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
