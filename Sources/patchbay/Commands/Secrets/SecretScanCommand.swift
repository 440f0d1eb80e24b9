import ArgumentParser
import Client
import Glibc
import Model
import Synchronization
import SystemIO

struct SecretScanCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scan",
        abstract: "Copy a log to standard output and store the session tokens of AppReveal in it.",
        discussion: """
            Copies the input immediately and unchanged, except for the tokens, which are removed. A token is the word \
            after appreveal_session_token=, X-AppReveal-Session: or Bearer. The log may be JSON with escapes, \
            HTML-escaped, percent-encoded, coloured, wrapped to lines of at least 16 characters, or UTF-16. \
            docs/cli.md names the forms of which a part stays. \
            A token of 64 hexadecimal digits in an http URL is stored for the app with the port of the URL \
            when that app is listed. If several apps have that port, the host of the URL selects one. Messages go to \
            standard error. Waits for a broker that is not running. Fails if tokens were removed and none was stored.

              adb logcat | patchbay secret scan
              patchbay secret scan < app.log > /dev/null
            """
    )

    @Option(
        name: [.short, .long],
        help: ArgumentHelp("Store the tokens for this endpoint, not for the app with the URL's port.", valueName: "id"),
        completion: .objects(.endpoints)
    )
    var endpoint: String?
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        ProcessLimits.disableCoreDumps()
        // Ignores the first Ctrl-C, so that the last output of the program before the pipe is still copied.
        var once = sigaction()
        once.__sigaction_handler.sa_handler = { _ in }
        once.sa_flags = CInt(bitPattern: UInt32(SA_RESETHAND)) | CInt(SA_RESTART)
        sigaction(SIGINT, &once, nil)

        let (events, continuation) = AsyncStream.makeStream(of: SecretUploader.Event.self)
        let errors = Console.errors()
        let uploader = SecretUploader(client: try options.client) { text in try? errors.line("patchbay: \(text)") }
        let selector = endpoint.map { EndpointSelector(text: $0, command: "patchbay secret scan --endpoint") }
        async let delivered: Void = uploader.run(events, sendingTo: continuation, selector: selector)
        let count = Mutex(0)
        let ending = await LogScanner().run { session in
            count.withLock { $0 += 1 }
            continuation.yield(.found(session))
        }
        switch ending {
        case .finished(let redactions):
            if redactions > 0, count.withLock({ $0 }) == 0 {
                continuation.finish()
                throw Self.noTokenStored(redactions: redactions)
            }
        case .outputClosed:
            continuation.finish()
            throw BrokenPipe()
        case .unreadable(let code):
            continuation.finish()
            throw CLIError.failed(
                "standard input cannot be read: \(String(cString: strerror(code)))",
                try: "adb logcat | patchbay secret scan"
            )
        }
        continuation.yield(.inputEnded)
        try await delivered
    }

    /// The error for removed tokens of which none could be stored.
    private static func noTokenStored(redactions: Int) -> CLIError {
        let tokens = redactions == 1 ? "1 token was" : "\(redactions) tokens were"
        return CLIError.failed(
            "\(tokens) removed from the output and not stored: no http URL with a token of 64 hexadecimal digits",
            try: "patchbay secret set ID"
        )
    }
}

/// Copies standard input to standard output through a `SessionTokenFilter`, without buffering.
///
/// Uses a thread with blocking calls. Standard input can be a regular file, which epoll(7) does not support. Standard
/// input must not be made non-blocking, because a terminal is shared with the shell.
struct LogScanner {
    enum Ending: Sendable, Equatable {
        /// The input ended; the number of removed tokens.
        case finished(redactions: Int)
        /// The reader closed standard output.
        case outputClosed
        /// A read failed.
        case unreadable(errno: CInt)
    }

    var input = STDIN_FILENO
    var output = STDOUT_FILENO

    private static let chunk = 64 << 10

    /// Copies until the end of the input.
    ///
    /// - Parameter found: Receives each session, on the copying thread; must not block.
    /// - Returns: The reason of the end.
    func run(_ found: @escaping @Sendable (SessionURL) -> Void) async -> Ending {
        let (input, output) = (input, output)
        return await BlockingThread.value {
            var filter = SessionTokenFilter()
            var buffer = [UInt8](repeating: 0, count: Self.chunk)
            while true {
                let count = read(input, &buffer, Self.chunk)
                if count == 0 { break }
                if count < 0 {
                    if BlockingThread.shouldRetry(input, POLLIN) { continue }
                    return .unreadable(errno: errno)
                }
                let (passed, sessions) = filter.feed(buffer[..<count])
                let isRead = BlockingThread.write(passed, to: output)
                for session in sessions { found(session) }
                if !isRead { return .outputClosed }
            }
            let (rest, sessions) = filter.finish()
            let isRead = BlockingThread.write(rest, to: output)
            for session in sessions { found(session) }
            guard isRead else { return .outputClosed }
            return .finished(redactions: filter.redactions)
        }
    }
}
