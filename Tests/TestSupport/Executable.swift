import FoundationEssentials
import Glibc

/// Looks up paths of programs.
package enum Executable {
    /// Returns the path of an installed program. Also searches the folders of daemons, which are not on every user's
    /// PATH on Debian.
    ///
    /// - Throws: `TestSupportError` when it is not installed.
    package static func find(_ name: String) throws -> String {
        if name.contains("/") { return name }
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        for folder in path.split(separator: ":") + ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"] {
            let candidate = "\(folder)/\(name)"
            if access(candidate, X_OK) == 0 { return candidate }
        }
        throw TestSupportError("\(name) is not installed; `make setup` installs what the tests need")
    }

    package static func isInstalled(_ name: String) -> Bool { (try? find(name)) != nil }

    /// Returns the path of a program of this package, which the build puts into the folder of the tests.
    package static func built(_ name: String) throws -> String {
        guard let tests = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") else {
            throw TestSupportError(call: "readlink(/proc/self/exe)")
        }
        let path = tests.split(separator: "/").dropLast().joined(separator: "/")
        let candidate = "/\(path)/\(name)"
        guard access(candidate, X_OK) == 0 else {
            throw TestSupportError("\(candidate) is not there; `swift build --build-tests` builds it")
        }
        return candidate
    }
}
