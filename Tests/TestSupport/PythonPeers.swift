import FoundationEssentials
import Glibc

/// Independent implementations to test against, from PyPI.
package enum PythonPeers {
    /// A Python that has the small ones.
    ///
    /// It is the one in the virtual environment `PATCHBAY_TEST_VENV`, or one that is made once in the build folder, which
    /// needs PyPI.
    package static func interpreter(in scratch: ScratchFolder) async throws -> String {
        if let folder = ProcessInfo.processInfo.environment["PATCHBAY_TEST_VENV"] { return "\(folder)/bin/python3" }
        return "\(try await environment("venv", with: ["openapi-spec-validator", "zeroconf"], in: scratch))/bin/python3"
    }

    /// pymobiledevice3's program.
    ///
    /// It is the one in the virtual environment `PATCHBAY_TEST_VENV` if it is there, or one that is installed once in the
    /// build folder, which needs PyPI, about half a minute and 340 MB.
    package static func pymobiledevice3(in scratch: ScratchFolder) async throws -> String {
        if let folder = ProcessInfo.processInfo.environment["PATCHBAY_TEST_VENV"],
            access("\(folder)/bin/pymobiledevice3", X_OK) == 0
        {
            return "\(folder)/bin/pymobiledevice3"
        }
        let folder = try await environment("venv-pymobiledevice3", with: ["pymobiledevice3"], in: scratch)
        return "\(folder)/bin/pymobiledevice3"
    }

    /// The folder of a virtual environment that has these packages.
    private static func environment(
        _ name: String,
        with packages: [String],
        in scratch: ScratchFolder
    ) async throws -> String {
        let folder = "\(RigFolder.build)/\(name)"
        let mark = "\(folder)/has-\(packages.joined(separator: "-"))"
        let script = """
            [ -e \(mark) ] && exit
            python3 -m venv \(folder)
            \(folder)/bin/pip install --quiet --disable-pip-version-check \(packages.joined(separator: " "))
            touch \(mark)
            """
        try await RigFolder.build("sh", ["-ec", script], within: .seconds(300), in: scratch)
        return folder
    }
}
