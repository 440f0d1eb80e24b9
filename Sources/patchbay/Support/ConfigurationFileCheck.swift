import FoundationEssentials
import Glibc
import Model
import SystemIO

/// Checks a configuration file with the `patchbayd` next to this program, which has the same version.
struct ConfigurationFileCheck {
    /// The file; nil for the one that patchbayd would read.
    let file: String?

    enum Result: Equatable {
        case valid
        /// The errors, each with the file, the line and the reason.
        case invalid([String])
        /// The file cannot be checked, for this reason.
        case unknown(String)
    }

    /// - Parameter socket: The socket of the broker: the service has a file of its own.
    init(ofBrokerAt socket: String) {
        file = BrokerService.isBroker(at: socket) ? BrokerService.configuration : nil
    }

    init(file: String) { self.file = file }

    func run() async -> Result {
        if let file, access(file, R_OK) != 0 {
            return errno == ENOENT ? .valid : .unknown("\(file) is readable for other users only; use sudo to check it")
        }
        guard let daemon = try? Self.daemon() else { return .unknown("patchbayd is not installed beside patchbay") }
        let arguments = ["--check-config"] + (file.map { ["--config", $0] } ?? [])
        guard let process = try? ChildProcess(daemon, arguments, announcing: ""), let exit = try? await process.exit()
        else { return .unknown("patchbayd --check-config cannot be started") }
        guard exit.status == ExitStatus.configuration.rawValue else { return .valid }
        return .invalid(Self.errors(in: exit.errorOutput))
    }

    /// Returns the lines of an error output without their prefix.
    static func errors(in output: String) -> [String] {
        output.split(separator: "\n").filter { $0.hasPrefix(prefix) }
            .map { SanitizedText(String($0.dropFirst(prefix.count)), limit: .max).text }
    }

    private static let prefix = "error: "

    /// Returns the path of patchbayd next to this program.
    static func daemon() throws(CLIError) -> String {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? "/usr/bin/patchbay"
        let path = own.prefix(through: own.lastIndex(of: "/") ?? own.startIndex) + "patchbayd"
        guard access(String(path), X_OK) == 0 else {
            throw CLIError.notFound(
                "\(path) is missing, and it checks the configuration",
                try: "install patchbayd next to patchbay"
            )
        }
        return String(path)
    }
}

extension ConfigurationFileCheck {
    /// Describes an invalid file, with the next step.
    ///
    /// - Parameters:
    ///   - result: The result of the check.
    ///   - isService: True if the service reads the file.
    ///   - pid: The process of the broker, which has the values that it read before; nil if it does not run.
    /// - Returns: The problem; nil for a valid file.
    static func problem(_ result: Result, isService: Bool, pid: Int32?) -> BrokerProblem? {
        guard case .invalid(let errors) = result else { return nil }
        let rest = errors.count > 1 ? ", and \(errors.count - 1) more" : ""
        let text = (errors.first ?? "the configuration is invalid") + rest
        let apply =
            switch pid {
            case nil: isService ? "sudo systemctl restart patchbayd" : "patchbayd"
            case let pid?: isService ? "sudo systemctl reload patchbayd" : "kill -HUP \(pid)"
            }
        return BrokerProblem(
            "config",
            pid == nil ? .startPrevented : .configurationInvalid,
            subject: "config",
            text: pid == nil ? text : "\(text); the broker keeps its values, and cannot start again",
            hint: "correct the file, then `\(apply)`" + (rest.isEmpty ? "" : "; `patchbay config check` lists all"),
            command: apply
        )
    }
}
