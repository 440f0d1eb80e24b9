import Client
import Model

/// How the program ends; the numbers are those of sysexits.h where it has a word for it.
///
/// The one place where errors become numbers. `patchbay help exit-codes` prints the table.
enum ExitStatus: CInt, CaseIterable {
    case ok = 0
    case error = 1
    case usage = 64
    case notFound = 66
    case notReachable = 69
    case temporary = 75
    case notPermitted = 77
    case configuration = 78
    case interrupted = 130
    case outputClosed = 141

    init(for error: any Error) {
        switch error {
        case let complaint as CLIError: self = complaint.status
        case let error as ClientError: self.init(for: error)
        case is BrokenPipe: self = .outputClosed
        case is CancellationError: self = .interrupted
        // Everything else that is thrown comes from the parser of the command line.
        default: self = .usage
        }
    }

    private init(for error: ClientError) {
        switch error {
        case .brokerNotRunning: self = .notReachable
        case .notPermitted: self = .notPermitted
        case .unusablePath: self = .configuration
        case .busy, .timedOut, .connectionLost: self = .temporary
        case .notUnderstood: self = .error
        case .refused(let problem):
            switch problem.code {
            case .badRequest, .ambiguous, .methodNotAllowed, .tooLarge, .headTooLarge, .unsupportedMedia,
                .misdirected:
                self = .usage
            case .notFound: self = .notFound
            case .unauthorized, .forbidden: self = .notPermitted
            case .unavailable, .limit, .slowDown, .timeout: self = .temporary
            case .conflict, .internalError: self = .error
            }
        }
    }

    /// Its name in the errors that `--json` prints.
    var code: String {
        switch self {
        case .ok: "ok"
        case .error: "error"
        case .usage: "usage"
        case .notFound: "not-found"
        case .notReachable: "not-reachable"
        case .temporary: "temporary"
        case .notPermitted: "not-permitted"
        case .configuration: "configuration"
        case .interrupted: "interrupted"
        case .outputClosed: "output-closed"
        }
    }

    /// What a script may conclude from it.
    var meaning: String {
        switch self {
        case .ok: "done"
        case .error: "it failed; the message says why, and `doctor` ends with it when a check failed"
        case .usage: "the command line is wrong, or fits more than one thing"
        case .notFound: "no such endpoint, tool, phone, tunnel, advertisement or grant"
        case .notReachable: "no broker listens at the socket"
        case .temporary: "not now: try the same again later"
        case .notPermitted: "this user or token may not do that, or an app waits for a yes or its own token"
        case .configuration: "the configuration or a path in it is wrong"
        case .interrupted: "stopped by Ctrl-C"
        case .outputClosed: "whoever read the output went away"
        }
    }

    /// For the end of each help.
    static let summary = """
        EXIT CODES: 0 done, 1 failed, 64 usage, 66 not found, 69 no broker, 75 try again,
          77 not permitted, 78 configuration; see 'patchbay help exit-codes'.
        """

    static var table: String {
        let rows = allCases.map { status in
            let number = "\(status.rawValue)"
            return "  " + String(repeating: " ", count: 3 - number.count) + number + "  " + status.meaning
        }
        let iproxy = """
            `patchbay iproxy` ends with iproxy's own numbers: 2 for a wrong command
            line, 234 for a wrong port, 247 where it cannot listen.
            """
        return (["Exit codes of patchbay:"] + rows + ["", iproxy]).joined(separator: "\n")
    }
}
