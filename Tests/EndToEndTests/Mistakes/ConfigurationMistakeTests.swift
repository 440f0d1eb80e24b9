import FoundationEssentials
import TestSupport
import Testing

/// An invalid configuration file is named by every command, with its line and the reason.
@Suite(.scratchFolder) struct ConfigurationMistakeTests {
    private let scratch = ScratchFolder.current

    /// The file that a broker of this scratch folder finds by itself.
    private var file: String { "\(scratch.path)/.config/patchbay/patchbay.toml" }

    private func write(_ text: String) throws {
        _ = try FileManager.default.createDirectory(
            atPath: "\(scratch.path)/.config/patchbay",
            withIntermediateDirectories: true
        )
        try Data(text.utf8).write(to: URL(filePath: file))
    }

    /// Runs a command and returns both of its outputs.
    private func words(_ arguments: String..., of broker: RunningBroker) async throws -> String {
        let program = try await broker.start(arguments)
        _ = try await program.exitStatus()
        return (program.output + [program.log]).joined(separator: "\n")
    }

    @Test func `each command names the line, beside a running broker and without one`() async throws {
        try write("[broker]\nlog_level = \"info\"\n")
        let broker = try await RunningBroker(in: scratch)
        #expect(try await !words("status", of: broker).contains("patchbay.toml"))
        #expect(try await words("doctor", of: broker).contains("\(file) is valid"))

        try write("[broker]\nlog_level = debug\n")
        let mistake = "\(file):2:13: text needs quotes; write \"debug\""
        for command in ["status", "doctor"] {
            let words = try await words(command, of: broker)
            #expect(words.contains(mistake) && words.contains("kill -HUP \(broker.daemon.processID)"), "\(words)")
        }

        broker.daemon.terminate()
        _ = try await broker.daemon.exitStatus()
        for command in ["status", "list", "doctor"] {
            let words = try await words(command, of: broker)
            #expect(words.contains(mistake) && words.contains("try: correct the file, then"), "\(words)")
        }
    }
}
