/// A fake adb server on a unix socket (`adb/server.py`), for states of phones that need USB, and for hostile servers.
package struct ScriptedADBServer: Sendable {
    /// What a hostile server sends; `adb/server.py` explains each.
    package enum Hostility: String, Sendable, CaseIterable {
        case garbage
        case truncated
        case lists
        case endless
    }

    package let socketPath: String

    /// Starts the server.
    ///
    /// - Parameters:
    ///   - devices: The text of its list of devices.
    ///   - hostility: What it sends instead of answers.
    ///   - versions: The version of each of its runs, in four hexadecimal digits.
    ///   - life: The seconds of each run; nil for one run.
    ///   - scratch: The folder of the test.
    /// - Throws: `TestSupportError` if it does not start.
    package init(
        _ devices: String,
        hostility: Hostility? = nil,
        versions: [String] = ["0029"],
        life: Double? = nil,
        in scratch: ScratchFolder
    ) async throws {
        let number = UInt16.random(in: 0 ... .max)
        socketPath = scratch.file("adb-\(number)")
        let list = try scratch.write(devices, to: "adb-\(number).devices")
        var words = ["-u", "\(TestSupportFolder.sources)/adb/server.py", socketPath, "--devices", list]
        words += ["--versions", versions.joined(separator: ",")]
        if let life { words += ["--life", "\(life)"] }
        if let hostility { words += ["--hostile", hostility.rawValue] }
        try await Program("python3", words, in: scratch).waitForLine("listening")
    }

    /// The configuration of a broker that uses this server.
    package var configuration: String { "[devices]\nadb = \"\(socketPath)\"\n" }
}
