import ArgumentParser
import Client
import Glibc
import Model
import Synchronization
import SystemIO

struct SecretScanCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scan",
        abstract: "Pass a log through, and give the broker each session token that AppReveal prints in it.",
        discussion: """
            Everything is passed on at once and as it is, but for the token, which is left out. It is found in every http \
            URL with appreveal_session_token= and 64 hexadecimal digits, whatever else stands in the line. The broker gets \
            it for the app with the port in the URL, as soon as that is listed; a broker that is away is waited for. What \
            happened is told on standard error. It fails where a token was left out and none could be stored.

              adb logcat | patchbay secret scan
              patchbay secret scan < app.log > /dev/null
            """
    )

    @Option(
        name: [.short, .long],
        help: ArgumentHelp("Whose tokens they are, instead of the app's with that port.", valueName: "id")
    )
    var endpoint: String?
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        CoreDump.forbid()
        // The first Ctrl-C is for the one who writes: what it says last still passes, and then the input ends.
        var once = sigaction()
        once.__sigaction_handler.sa_handler = { _ in }
        once.sa_flags = CInt(bitPattern: UInt32(SA_RESETHAND)) | CInt(SA_RESTART)
        sigaction(SIGINT, &once, nil)

        let (events, tell) = AsyncStream.makeStream(of: SecretUploader.Event.self)
        let errors = Console.errors()
        let courier = SecretUploader(client: try options.client) { text in try? errors.line("patchbay: \(text)") }
        let selector = endpoint.map { EndpointSelector(text: $0, command: "patchbay secret scan --endpoint") }
        async let delivered: Void = courier.run(events, tell, selector)
        let count = Mutex(0)
        let ending = await LogScanner().run { session in
            count.withLock { $0 += 1 }
            tell.yield(.found(session))
        }
        switch ending {
        case .finished(let redactions):
            if redactions > 0, count.withLock({ $0 }) == 0 {
                tell.finish()
                throw Self.complaint(aboutOnly: redactions)
            }
        case .outputClosed:
            tell.finish()
            throw BrokenPipe()
        case .unreadable(let code):
            tell.finish()
            throw CLIError(
                status: .error,
                message: "standard input cannot be read: \(String(cString: strerror(code)))",
                remedy: "adb logcat | patchbay secret scan"
            )
        }
        tell.yield(.inputEnded)
        try await delivered
    }

    /// The output lacks tokens that are nowhere else now.
    private static func complaint(aboutOnly redactions: Int) -> CLIError {
        let tokens = redactions == 1 ? "1 token was" : "\(redactions) tokens were"
        return CLIError(
            status: .error,
            message:
                "\(tokens) left out of the output, and none was stored: none stood in an http URL with 64 hexadecimal "
                + "digits",
            remedy: "patchbay secret set ID"
        )
    }
}

/// Copies standard input to standard output through a `SessionTokenFilter`, each piece as soon as it comes.
///
/// On a thread with blocking calls, because standard input may be a regular file, which epoll(7) does not take, and must
/// not be made non-blocking: a terminal is shared with the shell.
struct LogScanner {
    enum Ending: Sendable, Equatable {
        /// Everything is passed on, but for so many tokens.
        case finished(redactions: Int)
        /// Whoever read standard output is gone.
        case outputClosed
        case unreadable(errno: CInt)
    }

    var input = STDIN_FILENO
    var output = STDOUT_FILENO

    private static let chunk = 64 << 10

    /// Returns at the end of the input.
    ///
    /// - Parameter found: Called with each session, from the thread that copies; it must not block.
    /// - Returns: How it ended.
    func run(_ found: @escaping @Sendable (SessionURL) -> Void) async -> Ending {
        let (input, output) = (input, output)
        return await BlockingThread.value {
            var filter = SessionTokenFilter()
            var buffer = [UInt8](repeating: 0, count: Self.chunk)
            while true {
                let count = read(input, &buffer, Self.chunk)
                if count == 0 { break }
                if count < 0 {
                    if BlockingThread.isPassing(input, POLLIN) { continue }
                    return .unreadable(errno: errno)
                }
                let (passed, sessions) = filter.feed(buffer[..<count])
                let isRead = BlockingThread.write(passed, to: output)
                for session in sessions { found(session) }
                if !isRead { return .outputClosed }
            }
            for session in filter.finish() { found(session) }
            return .finished(redactions: filter.redactions)
        }
    }
}
