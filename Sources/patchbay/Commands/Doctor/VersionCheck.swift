import CVersion
import Glibc
import Model
import SystemIO

/// Reports the versions that a bug report needs.
struct VersionCheck {
    /// A program that prints `NAME VERSION` with `--version`.
    struct Program: Hashable {
        let name: String
        /// The places of the program, in the order of the search.
        let paths: [String]
    }

    static let programs = [
        Program(name: "avahi-daemon", paths: ["/usr/sbin/avahi-daemon", "/usr/local/sbin/avahi-daemon"]),
        Program(name: "usbmuxd", paths: UsbmuxdCheck.standardPrograms),
    ]

    /// The version of the broker; nil if the broker does not respond.
    let broker: String?
    /// True if a broker listens.
    var isRunning = false
    var readKernel: () -> String = Self.kernel
    /// Returns the version of a program; nil if the program is missing or does not answer.
    var readVersion: (Program) async -> String? = Self.version

    func run() async -> Check {
        let own = Version.text(commit: String(cString: CVersion_commit()))
        var parts = ["patchbay \(own)", "patchbayd \(broker ?? (isRunning ? "of unknown version" : "not running"))"]
        for program in Self.programs {
            let version = await readVersion(program)
            parts.append("\(program.name) \(version ?? "not installed")")
        }
        parts.append(readKernel())
        return .ok("versions", parts.joined(separator: ", "))
    }

    private static func kernel() -> String {
        var names = utsname()
        guard uname(&names) == 0 else { return "an unknown kernel" }
        return withUnsafeBytes(of: names.release) { "Linux \(String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self))" }
    }

    private static func version(of program: Program) async -> String? {
        guard let path = program.paths.first(where: { access($0, X_OK) == 0 }),
            let process = try? ChildProcess(path, ["--version"], announcing: "\(program.name) "),
            let version = try? await process.announcement()
        else { return nil }
        return SanitizedText(version).text
    }
}
