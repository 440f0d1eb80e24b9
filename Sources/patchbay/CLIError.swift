import ArgumentParser
import Client
import Model

/// What went wrong, as a person is told: the thing, perhaps what it might have been, and the next step.
struct CLIError: Error, Equatable {
    let status: ExitStatus
    /// What happened to which thing.
    let message: String
    /// Lines between the two: the candidates of an ambiguous name.
    var candidates: [String] = []
    /// A command, or what to do.
    var remedy: String?
    /// Where a drop-in must end with the number of the program whose place it takes.
    var exitCode: CInt?
    /// The broker's own words, where it said no.
    var problem: Problem?
}

extension CLIError {
    /// The words for any error that reaches the top.
    ///
    /// - Parameters:
    ///   - error: What was thrown.
    ///   - command: The command as far as it was understood, `patchbay tunnels rm`.
    init(describing error: any Error, command: String) {
        let status = ExitStatus(for: error)
        let said: CLIError
        switch error {
        case let complaint as CLIError: said = complaint
        case let error as ClientError:
            var complaint = CLIError(status: status, message: error.description, remedy: error.remedy)
            if case .refused(let problem) = error { complaint.problem = problem }
            said = complaint
        default:
            let message = Self.lowered(Patchbay.message(for: error))
            said = CLIError(status: status, message: message, remedy: "\(command) --help")
        }
        // What was typed is repeated, and may have been a token.
        self.init(
            status: said.status,
            message: Secret.redacted(said.message),
            candidates: said.candidates.map(Secret.redacted),
            remedy: said.remedy.map(Secret.redacted),
            exitCode: said.exitCode,
            problem: said.problem
        )
    }

    /// A sentence of the parser's in the case of ours, which follow "error:"; `UDID` and the like stay.
    private static func lowered(_ sentence: String) -> String {
        guard let first = sentence.first, sentence.dropFirst().first?.isUppercase == false else { return sentence }
        let rest = sentence.dropFirst()
        return first.lowercased() + (rest.hasSuffix(".") && !rest.contains("\n") ? rest.dropLast() : rest)
    }

    static func usage(_ message: String, try remedy: String) -> CLIError {
        CLIError(status: .usage, message: message, remedy: remedy)
    }

    static func notFound(_ message: String, try remedy: String) -> CLIError {
        CLIError(status: .notFound, message: message, remedy: remedy)
    }
}

/// A complaint for programs, which `--json` puts on standard error: a problem as RFC 9457 shapes it, like the broker's own.
struct CLIErrorReport: Encodable {
    struct Fault: Encodable {
        let type: String
        let title: String
        /// The HTTP status, where the broker said no.
        let status: Int?
        let detail: String
        let code: String
        let next: String?
        /// What an ambiguous name might have been.
        let candidates: [String]?
        let exitCode: Int
    }

    let error: Fault

    init(_ complaint: CLIError) {
        let status = complaint.status
        error = Fault(
            type: complaint.problem?.type ?? "urn:patchbay:problem:\(status.code)",
            title: complaint.problem?.title ?? status.meaning,
            status: complaint.problem?.status,
            detail: complaint.message,
            code: complaint.problem?.code.rawValue ?? status.code,
            next: complaint.remedy,
            candidates: complaint.candidates.isEmpty ? nil : complaint.candidates,
            exitCode: Int(complaint.exitCode ?? status.rawValue)
        )
    }

    /// Whether a command line asks for it; it may be one that the parser refuses.
    static func isWanted(by arguments: [String]) -> Bool { arguments.prefix { $0 != "--" }.contains("--json") }
}
