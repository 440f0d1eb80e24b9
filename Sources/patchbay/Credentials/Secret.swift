import Glibc
import Model
import SystemIO

/// A text that is shown to nobody: an app's session token, an invite, a grant's token.
///
/// Printing, interpolating, dumping and reflecting it shows nothing of it.
struct Secret: Sendable, Equatable {
    private let text: String

    init(_ text: String) { self.text = text }

    var isEmpty: Bool { text.isEmpty }

    /// For the one who is to have it, and for nothing else.
    func reveal() -> String { text }

    /// A message without the tokens that somebody typed into it: of each the id is left, which is no secret.
    static func redacted(_ message: String) -> String {
        message.replacing(#/\b(pb[ig]_[0-9A-Za-z]{8})_[0-9A-Za-z]+(_[0-9A-Za-z]+)?/#) { "\($0.output.1)_…" }
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    var description: String { "(secret)" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: []) }
}

/// Where secrets come in: standard input, piped or typed without echo, and nowhere else.
///
/// Arguments and the environment are there for others to read (`ps`, `/proc`), and shells keep what was typed.
enum SecretInput {
    /// The longest line: an endpoint's secret has at most 4,096 bytes, and may be pasted with the line around it.
    private static let limit = 8_192

    /// Reads one line without the blanks around it.
    ///
    /// - Parameters:
    ///   - question: For a person, `Pairing string: `.
    ///   - command: What to type again after a mistake.
    /// - Returns: The line; it is not empty.
    /// - Throws: `CLIError`, which does not repeat what was read.
    static func line(_ question: String, command: String) async throws(CLIError) -> String {
        CoreDump.forbid()
        let input = await BlockingThread.value {
            isatty(STDIN_FILENO) == 1
                ? PasswordPrompt.line(question, limit: limit) : LineInput.read(from: STDIN_FILENO, limit: limit)
        }
        return try text(in: input, command: command)
    }

    /// - Throws: `CLIError`, which does not repeat what was read.
    static func text(in input: LineInput, command: String) throws(CLIError) -> String {
        let remedy = "\(command), and paste it when asked"
        let bytes: [UInt8]
        switch input {
        case .line(let line): bytes = line
        case .nothing: throw .usage("nothing came on standard input", try: remedy)
        case .tooLong:
            throw .usage("the line on standard input has more than \(limit) bytes: no secret is so long", try: remedy)
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw .usage("the line on standard input is not UTF-8, and a secret is printable ASCII", try: remedy)
        }
        let blanks: Set<Character> = [" ", "\t", "\r"]
        let trimmed = text.drop { blanks.contains($0) }
        guard let last = trimmed.lastIndex(where: { !blanks.contains($0) }) else {
            throw .usage("the line on standard input is empty", try: remedy)
        }
        return String(trimmed[...last])
    }

    /// Refuses a secret on the command line without repeating it.
    static func refuse(arguments: [String], what: String, command: String) throws(CLIError) {
        guard !arguments.isEmpty else { return }
        throw .usage(
            "\(what) is never an argument: everybody on this machine can read arguments, and shells keep them",
            try: "\(command), and paste it when asked; what you typed is no secret any more, so replace it"
        )
    }
}

/// One line of a descriptor, read with calls that block.
enum LineInput: Equatable {
    /// What stands before the first line break or the end.
    case line([UInt8])
    /// There is nothing at all, or it cannot be read.
    case nothing
    /// More than the limit, without a line break.
    case tooLong

    static func read(from descriptor: CInt, limit: Int) -> LineInput {
        var line: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while line.count <= limit {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0 {
                guard BlockingThread.isPassing(descriptor, POLLIN) else { return .nothing }
                continue
            }
            line += buffer[..<count]
            if let end = line.firstIndex(of: UInt8(ascii: "\n")) { return .line(Array(line[..<end])) }
            if count == 0 { return line.isEmpty ? .nothing : .line(line) }
        }
        return .tooLong
    }
}
