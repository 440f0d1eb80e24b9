import FoundationEssentials

/// Independent implementations to test against, from PyPI: python-zeroconf.
package enum PythonPeers {
    /// A Python that has it.
    ///
    /// It is the one in the virtual environment `PATCHBAY_TEST_VENV`, or one that is made once in the build folder, which
    /// needs PyPI.
    package static func interpreter(in scratch: ScratchFolder) async throws -> String {
        if let folder = ProcessInfo.processInfo.environment["PATCHBAY_TEST_VENV"] { return "\(folder)/bin/python3" }
        let folder = "\(RigFolder.build)/venv"
        let script = """
            [ -e \(folder)/complete ] && exit
            python3 -m venv \(folder)
            \(folder)/bin/pip install --quiet --disable-pip-version-check zeroconf
            touch \(folder)/complete
            """
        try await RigFolder.build("sh", ["-ec", script], within: .seconds(300), in: scratch)
        return "\(folder)/bin/python3"
    }
}
