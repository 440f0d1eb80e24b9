import FoundationEssentials
import Glibc

/// The debuggable apps that run on a simulated phone, and the phone's log. Each is a file that `adb/phone.py` follows.
package struct AndroidApps: Sendable {
    /// An app that runs.
    package struct App: Sendable {
        /// 0 for an app that is installed and does not run.
        package var processID: UInt32
        package var user: UInt32
        package var package: String
        /// The ports on which it listens.
        package var ports: [UInt16]

        package init(_ package: String, processID: UInt32, user: UInt32, ports: [UInt16] = []) {
            (self.package, self.processID, self.user, self.ports) = (package, processID, user, ports)
        }
    }

    /// The file for `AndroidPhone.apps`.
    package let appsFile: String
    /// The file for `AndroidPhone.log`.
    package let logFile: String

    package init(named name: String = "phone", in scratch: ScratchFolder) throws {
        appsFile = try scratch.write("", to: "\(name).apps")
        logFile = try scratch.write("", to: "\(name).log")
    }

    /// Replaces the apps that run.
    package func set(_ apps: [App]) throws {
        let lines = apps.map { app in
            (["\(app.processID)", "\(app.user)", app.package] + app.ports.map { "\($0)" }).joined(separator: " ") + "\n"
        }
        try Data(lines.joined().utf8).write(to: URL(filePath: "\(appsFile).new"))
        guard rename("\(appsFile).new", appsFile) == 0 else { throw TestSupportError(call: "rename") }
    }

    /// Adds a line as an app would write it.
    package func log(_ text: String, tag: String = "AppReveal", by app: App) throws {
        try logRaw(Self.line(text, tag: tag, by: app))
    }

    package static func line(_ text: String, tag: String = "AppReveal", by app: App) -> String {
        "11-26 10:00:00.000 \(app.user) \(app.processID) \(app.processID) I \(tag.padding(to: 8)): \(text)\n"
    }

    /// Adds a text to the log as it is.
    package func logRaw(_ text: String) throws {
        let file = open(logFile, O_WRONLY | O_APPEND | O_CLOEXEC)
        guard file >= 0 else { throw TestSupportError(call: "open") }
        defer { close(file) }
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
            guard count > 0 else { throw TestSupportError(call: "write") }
            rest = rest.dropFirst(count)
        }
    }

    /// The line that AppReveal logs at each launch.
    package static func sessionURL(port: UInt16, token: String) -> String {
        "Session URL: http://127.0.0.1:\(port)/?appreveal_session_token=\(token)"
    }
}

extension String {
    fileprivate func padding(to count: Int) -> String {
        self + String(repeating: " ", count: max(0, count - utf8.count))
    }
}
