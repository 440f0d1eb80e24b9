import FoundationEssentials
import Glibc

/// Where programs are.
package enum Executable {
    /// The path of an installed program. Debian keeps daemons in folders that are not on everybody's PATH.
    ///
    /// - Throws: `RigError` when it is not installed.
    package static func find(_ name: String) throws -> String {
        if name.contains("/") { return name }
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        for folder in path.split(separator: ":") + ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"] {
            let candidate = "\(folder)/\(name)"
            if access(candidate, X_OK) == 0 { return candidate }
        }
        throw RigError("\(name) is not installed; `make setup` installs what the tests need")
    }

    package static func isInstalled(_ name: String) -> Bool { (try? find(name)) != nil }

    /// One of our own programs, which the build puts into the same folder as the tests.
    package static func built(_ name: String) throws -> String {
        guard let tests = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") else {
            throw RigError(call: "readlink(/proc/self/exe)")
        }
        let path = tests.split(separator: "/").dropLast().joined(separator: "/")
        let candidate = "/\(path)/\(name)"
        guard access(candidate, X_OK) == 0 else {
            throw RigError("\(candidate) is not there; `swift build --build-tests` builds it")
        }
        return candidate
    }
}
