import FoundationEssentials

/// Independent implementations to test against, from PyPI.
package enum PythonPeers {
    private static let packages = ["openapi-spec-validator", "zeroconf"]

    /// A Python that has them.
    ///
    /// It is the one in the virtual environment `PATCHBAY_TEST_VENV`, or one that is made once in the build folder, which
    /// needs PyPI.
    package static func interpreter(in scratch: ScratchFolder) async throws -> String {
        if let folder = ProcessInfo.processInfo.environment["PATCHBAY_TEST_VENV"] { return "\(folder)/bin/python3" }
        let folder = "\(RigFolder.build)/venv"
        let mark = "\(folder)/has-\(packages.joined(separator: "-"))"
        let script = """
            [ -e \(mark) ] && exit
            python3 -m venv \(folder)
            \(folder)/bin/pip install --quiet --disable-pip-version-check \(packages.joined(separator: " "))
            touch \(mark)
            """
        try await RigFolder.build("sh", ["-ec", script], within: .seconds(300), in: scratch)
        return "\(folder)/bin/python3"
    }
}
