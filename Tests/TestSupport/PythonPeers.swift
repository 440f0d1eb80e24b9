import FoundationEssentials
import Glibc

/// Independent implementations from PyPI for interoperability tests.
package enum PythonPeers {
    /// Returns a Python interpreter with the small packages.
    ///
    /// The interpreter is in the virtual environment `PATCHBAY_TEST_VENV`, or in one that is created once in the build
    /// folder from PyPI.
    package static func interpreter(in scratch: ScratchFolder) async throws -> String {
        if let folder = ProcessInfo.processInfo.environment["PATCHBAY_TEST_VENV"] { return "\(folder)/bin/python3" }
        return "\(try await environment("venv", with: ["openapi-spec-validator", "zeroconf"], in: scratch))/bin/python3"
    }

    /// Returns a Python interpreter with the WebSocket library `websockets`.
    package static func webSocketInterpreter(in scratch: ScratchFolder) async throws -> String {
        "\(try await environment("venv-websockets", with: ["websockets"], in: scratch))/bin/python3"
    }

    /// Returns a Python interpreter with facebook-wda, a client of WebDriverAgent. The first call installs it.
    package static func facebookWDA(in scratch: ScratchFolder) async throws -> String {
        "\(try await environment("venv-wda", with: ["facebook-wda"], in: scratch))/bin/python3"
    }

    /// Returns a Python interpreter with pyppeteer, which connects to a URL of a browser as Puppeteer does.
    package static func puppeteer(in scratch: ScratchFolder) async throws -> String {
        "\(try await environment("venv-puppeteer", with: ["pyppeteer==2.0.0"], in: scratch))/bin/python3"
    }

    /// Returns a Python interpreter with Playwright and axe-core. The first call installs them: 200 MB.
    package static func playwright(in scratch: ScratchFolder) async throws -> String {
        let packages = ["playwright==1.65.2", "axe-playwright-python==0.1.8"]
        return "\(try await environment("venv-playwright", with: packages, in: scratch))/bin/python3"
    }

    /// Returns the path of pymobiledevice3's program.
    ///
    /// The program is in the virtual environment `PATCHBAY_TEST_VENV`, or is installed once in the build folder. The
    /// installation needs PyPI, about 30 s and 340 MB.
    package static func pymobiledevice3(in scratch: ScratchFolder) async throws -> String {
        if let folder = ProcessInfo.processInfo.environment["PATCHBAY_TEST_VENV"],
            access("\(folder)/bin/pymobiledevice3", X_OK) == 0
        {
            return "\(folder)/bin/pymobiledevice3"
        }
        let folder = try await environment("venv-pymobiledevice3", with: ["pymobiledevice3"], in: scratch)
        return "\(folder)/bin/pymobiledevice3"
    }

    /// Returns the folder of a virtual environment with these packages.
    private static func environment(
        _ name: String,
        with packages: [String],
        in scratch: ScratchFolder
    ) async throws -> String {
        let folder = "\(TestSupportFolder.build)/\(name)"
        let mark = "\(folder)/has-\(packages.joined(separator: "-"))"
        let script = """
            [ -e \(mark) ] && exit
            python3 -m venv \(folder)
            \(folder)/bin/pip install --quiet --disable-pip-version-check \(packages.joined(separator: " "))
            touch \(mark)
            """
        try await TestSupportFolder.build("sh", ["-ec", script], within: .seconds(300), in: scratch)
        return folder
    }
}
