import Client
import Model

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
