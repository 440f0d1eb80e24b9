import ArgumentParser
import Client
import Model

/// An error as the user sees it: the failed object, optional candidates, and the next step.
struct CLIError: Error, Equatable {
    let status: ExitStatus
    /// The failure and the object that failed.
    let message: String
    /// The matches of an ambiguous name, one line each; printed between message and hint.
    var candidates: [String] = []
    /// The next step: a command to type or an instruction.
    var hint: String?
    /// An exit code that overrides the status. `patchbay iproxy` exits with iproxy's codes.
    var exitCode: CInt?
    /// The problem document, if the broker rejected the request.
    var problem: Problem?
}

extension CLIError {
    /// Converts any thrown error into a message for the user.
    ///
    /// - Parameters:
    ///   - error: The thrown error.
    ///   - command: The parsed prefix of the command line, such as `patchbay tunnels rm`.
    init(describing error: any Error, command: String) {
        let status = ExitStatus(for: error)
        let described: CLIError
        switch error {
        case let error as CLIError: described = error
        case let error as ClientError:
            var cliError = CLIError(status: status, message: error.description, hint: error.hint)
            if case .refused(let problem) = error { cliError.problem = problem }
            described = cliError
        default:
            let message = Self.lowercased(Patchbay.message(for: error))
            described = CLIError(status: status, message: message, hint: "\(command) --help")
        }
        // The message can repeat arguments, and an argument can be a token.
        self.init(
            status: described.status,
            message: Secret.redacted(described.message),
            candidates: described.candidates.map(Secret.redacted),
            hint: described.hint.map(Secret.redacted),
            exitCode: described.exitCode,
            problem: described.problem
        )
    }

    /// Adapts a parser message to the house style: lowercase first letter, no final full stop.
    ///
    /// A word that begins with two capital letters, such as `UDID`, stays unchanged.
    private static func lowercased(_ sentence: String) -> String {
        guard let first = sentence.first, sentence.dropFirst().first?.isUppercase == false else { return sentence }
        let rest = sentence.dropFirst()
        return first.lowercased() + (rest.hasSuffix(".") && !rest.contains("\n") ? rest.dropLast() : rest)
    }

    static func usage(_ message: String, candidates: [String] = [], try hint: String?) -> CLIError {
        CLIError(status: .usage, message: message, candidates: candidates, hint: hint)
    }

    static func notFound(_ message: String, candidates: [String] = [], try hint: String?) -> CLIError {
        CLIError(status: .notFound, message: message, candidates: candidates, hint: hint)
    }

    static func configuration(_ message: String, candidates: [String] = [], try hint: String?) -> CLIError {
        CLIError(status: .configuration, message: message, candidates: candidates, hint: hint)
    }

    static func notPermitted(_ message: String, candidates: [String] = [], try hint: String?) -> CLIError {
        CLIError(status: .notPermitted, message: message, candidates: candidates, hint: hint)
    }

    static func notReachable(_ message: String, candidates: [String] = [], try hint: String?) -> CLIError {
        CLIError(status: .notReachable, message: message, candidates: candidates, hint: hint)
    }

    static func temporary(_ message: String, candidates: [String] = [], try hint: String?) -> CLIError {
        CLIError(status: .temporary, message: message, candidates: candidates, hint: hint)
    }

    static func failed(_ message: String, candidates: [String] = [], try hint: String?) -> CLIError {
        CLIError(status: .error, message: message, candidates: candidates, hint: hint)
    }
}

/// The error document that `--json` prints on standard error: a problem as in RFC 9457.
struct CLIErrorReport: Encodable {
    struct Payload: Encodable {
        let type: String
        let title: String
        /// The HTTP status, if the broker rejected the request.
        let status: Int?
        let detail: String
        let code: String
        let hint: String?
        /// The matches of an ambiguous name.
        let candidates: [String]?
        let exitCode: Int
    }

    let error: Payload

    init(_ error: CLIError) {
        let status = error.status
        self.error = Payload(
            type: error.problem?.type ?? "urn:patchbay:problem:\(status.code)",
            title: error.problem?.title ?? status.meaning,
            status: error.problem?.status,
            detail: error.message,
            code: error.problem?.code.rawValue ?? status.code,
            hint: error.hint,
            candidates: error.candidates.isEmpty ? nil : error.candidates,
            exitCode: Int(error.exitCode ?? status.rawValue)
        )
    }

    /// Returns true if the command line contains `--json`, even when the parser rejects that command line.
    static func isWanted(by arguments: [String]) -> Bool { arguments.prefix { $0 != "--" }.contains("--json") }
}
