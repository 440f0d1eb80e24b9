import Glibc
import Model
import SystemIO

/// A text that must not be displayed: an app's session token, an invite token or a grant's token.
///
/// Printing, interpolation, `dump` and reflection do not reveal the text.
struct Secret: Sendable, Equatable {
    private let text: String

    init(_ text: String) { self.text = text }

    var isEmpty: Bool { text.isEmpty }

    /// Returns the text, for sending only.
    func reveal() -> String { text }

    /// Redacts the tokens in a message. The ID of each token stays, because the ID is not secret.
    static func redacted(_ message: String) -> String {
        message.replacing(#/\b(pb[igr]_[0-9A-Za-z]{8})_[0-9A-Za-z]+(_[0-9A-Za-z]+)?/#) { "\($0.output.1)_…" }
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    var description: String { "(secret)" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: []) }
}

/// Reads secrets from standard input, piped or typed without echo.
///
/// Arguments and the environment are visible to other users (`ps`, `/proc`), and shells store arguments in their history.
enum SecretInput {
    /// The maximum line length in bytes. An endpoint's secret has at most 4,096 bytes, plus the log line around the secret.
    private static let limit = 8_192

    /// Reads one line and removes surrounding blanks. Joins a secret that was pasted in several lines.
    ///
    /// - Parameters:
    ///   - question: The prompt at a terminal, such as `Pairing string: `.
    ///   - command: The command for the hint.
    ///   - isComplete: Returns whether a line is a complete secret, so that further lines of a paste do not belong to it.
    /// - Returns: The line, which is not empty.
    /// - Throws: `CLIError` without the input.
    static func line(
        _ question: String,
        command: String,
        isComplete: (String) -> Bool
    ) async throws(CLIError) -> String {
        ProcessLimits.disableCoreDumps()
        let input = await BlockingThread.value {
            isatty(STDIN_FILENO) == 1
                ? PasswordPrompt.line(question, limit: limit) : LineReadResult.read(from: STDIN_FILENO, limit: limit)
        }
        return try text(in: input, command: command, isComplete: isComplete)
    }

    /// Reads one line of a file, like `line`.
    ///
    /// - Throws: `CLIError` without the input, also if the file cannot be read.
    static func text(
        inFile path: String,
        command: String,
        isComplete: (String) -> Bool
    ) throws(CLIError) -> String {
        ProcessLimits.disableCoreDumps()
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let reason = SocketError.message(for: errno)
            throw .notFound("\(SanitizedText(path, limit: .max)) cannot be read: \(reason)", try: command)
        }
        defer { close(descriptor) }
        return try text(in: .read(from: descriptor, limit: limit), command: command, isComplete: isComplete)
    }

    /// Validates the input.
    ///
    /// - Throws: `CLIError` without the input.
    static func text(
        in input: LineReadResult,
        command: String,
        isComplete: (String) -> Bool
    ) throws(CLIError) -> String {
        let hint = "\(command), then paste the secret at the prompt"
        let bytes: [UInt8]
        switch input {
        case .line(let line): bytes = line
        case .nothing: throw .usage("standard input is empty", try: hint)
        case .tooLong:
            throw .usage("the line on standard input has more than \(limit) bytes; a secret is shorter", try: hint)
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw .usage("the line on standard input is not UTF-8; a secret is printable ASCII", try: hint)
        }
        let lines = text.split(whereSeparator: \.isNewline).map(trimmed).filter { !$0.isEmpty }
        guard let first = lines.first else { throw .usage("the line on standard input is empty", try: hint) }
        return isComplete(first) ? first : lines.joined()
    }

    private static func trimmed(_ line: Substring) -> String {
        let blanks: Set<Character> = [" ", "\t"]
        let begin = line.drop { blanks.contains($0) }
        return begin.lastIndex { !blanks.contains($0) }.map { String(begin[...$0]) } ?? ""
    }

    /// Rejects a secret on the command line. `replacing` says how the exposed one is replaced.
    ///
    /// - Throws: `CLIError` without the secret, if there are arguments.
    static func refuse(
        arguments: [String],
        what: String,
        command: String,
        replacing: String = "replace the exposed secret"
    ) throws(CLIError) {
        guard !arguments.isEmpty else { return }
        throw .usage(
            "\(what) must not be an argument: all users of this machine can read arguments, and shells store them",
            try: "\(replacing), then run \(command) and paste the new one at the prompt"
        )
    }
}

/// The result of reading one line with blocking calls.
enum LineReadResult: Equatable {
    /// The bytes before the first line break or end of file.
    case line([UInt8])
    /// End of file or a read error.
    case nothing
    /// The line is longer than the limit.
    case tooLong

    /// Reads one line from a descriptor.
    static func read(from descriptor: CInt, limit: Int) -> LineReadResult {
        var line: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while line.count <= limit {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0 {
                guard BlockingThread.shouldRetry(descriptor, POLLIN) else { return .nothing }
                continue
            }
            line += buffer[..<count]
            if let end = line.firstIndex(of: UInt8(ascii: "\n")) { return .line(Array(line[..<end])) }
            if count == 0 { return line.isEmpty ? .nothing : .line(line) }
        }
        return .tooLong
    }
}
