import Client
import Model

/// The exit code of the program: the code of sysexits.h where one fits.
///
/// All errors are mapped to exit codes here. `patchbay help exit-codes` prints the table.
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
        case let error as CLIError: self = error.status
        case let error as ClientError: self.init(for: error)
        case is BrokenPipe: self = .outputClosed
        case is CancellationError: self = .interrupted
        // All other errors come from ArgumentParser.
        default: self = .usage
        }
    }

    private init(for error: ClientError) {
        switch error {
        case .brokerNotRunning, .sshMissing, .sshFailed, .noRemoteBroker, .noListener, .unreachable, .tlsFailed:
            self = .notReachable
        case .notPermitted, .noRemotePermission, .otherKey, .keyRefused, .notTrusted: self = .notPermitted
        case .invalidDestination: self = .usage
        case .unusablePath: self = .configuration
        case .busy, .timedOut, .connectionLost: self = .temporary
        case .invalidResponse: self = .error
        case .refused(let problem):
            switch problem.code {
            case .badRequest, .ambiguous, .methodNotAllowed, .tooLarge, .headTooLarge, .unsupportedMedia,
                .misdirected, .upgradeRequired:
                self = .usage
            case .notFound: self = .notFound
            case .unauthorized, .forbidden: self = .notPermitted
            case .unavailable, .limit, .slowDown, .timeout, .leased: self = .temporary
            case .conflict, .internalError: self = .error
            }
        }
    }

    /// The `code` in the errors that `--json` prints.
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

    /// The description in the table of exit codes.
    var meaning: String {
        switch self {
        case .ok: "success"
        case .error: "failed, see the message; also from `doctor` and `status` if something does not work"
        case .usage: "invalid command line, or a name that matches several objects"
        case .notFound: "no such endpoint, tool, state, phone, tunnel, advertisement or grant"
        case .notReachable: "no broker is reachable: none listens, or ssh failed"
        case .temporary: "temporary failure, try again later"
        case .notPermitted: "not permitted, or the app needs an approval or its session token"
        case .configuration: "invalid configuration or path"
        case .interrupted: "interrupted with Ctrl-C"
        case .outputClosed: "the reader of the output closed the pipe"
        }
    }

    /// The footer of each help text.
    static let summary = """
        EXIT CODES: 0 success, 1 failed, 64 usage, 66 not found, 69 no broker, 75 try again,
          77 not permitted, 78 configuration; see 'patchbay help exit-codes'.
        """

    /// The output of `patchbay help exit-codes`.
    static var table: String {
        let rows = allCases.map { status in
            let number = "\(status.rawValue)"
            return "  " + String(repeating: " ", count: 3 - number.count) + number + "  " + status.meaning
        }
        let iproxy = """
            `patchbay iproxy` exits with the codes of iproxy: 2 for an invalid command
            line, 234 for an invalid port, 247 if it cannot listen.
            """
        return (["Exit codes of patchbay:"] + rows + ["", iproxy]).joined(separator: "\n")
    }
}
