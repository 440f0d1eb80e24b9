import FoundationEssentials
import Glibc
import Model

/// The reader closed the output pipe. The program exits without a message.
struct BrokenPipe: Error {}

/// Standard output or standard error. Each line is written immediately, without buffering.
struct Console: Sendable {
    private let descriptor: CInt
    let isTerminal: Bool
    let isColoured: Bool
    /// The terminal's size; nil if the descriptor is not a terminal, or has no size.
    let size: Size?
    /// The terminal's width in columns; nil if the descriptor is not a terminal.
    var width: Int? { size?.columns }

    /// The size of a terminal in characters.
    struct Size: Equatable {
        var columns: Int
        var rows: Int
    }

    init(descriptor: CInt, color: ColorChoice) {
        let environment = ProcessInfo.processInfo.environment
        self.descriptor = descriptor
        isTerminal = isatty(descriptor) == 1
        isColoured = color.isOn(environment: environment, isTerminal: isTerminal)
        size = isTerminal ? Self.size(of: descriptor, environment: environment) : nil
    }

    static func standard(_ color: ColorChoice = .auto) -> Console { Console(descriptor: STDOUT_FILENO, color: color) }
    static func errors() -> Console { Console(descriptor: STDERR_FILENO, color: .auto) }

    /// Writes one line.
    ///
    /// - Throws: `BrokenPipe`, or `CLIError` for other write errors such as a full disk.
    func line(_ text: String) throws {
        if let code = BlockingThread.failure(writing: Array(text.utf8) + [UInt8(ascii: "\n")], to: descriptor) {
            guard code == EPIPE else { throw Self.unwritable(code) }
            throw BrokenPipe()
        }
    }

    private static func unwritable(_ code: CInt) -> CLIError {
        CLIError.failed(
            "the output cannot be written: \(String(cString: strerror(code)))",
            try: "free disk space, or write the output to another place"
        )
    }

    /// Writes text without a line break and ignores errors.
    func write(_ text: String) { _ = BlockingThread.write(Array(text.utf8), to: descriptor) }

    func table(_ table: Table) throws { try line(table.text(width: width, isColoured: isColoured)) }

    /// Writes IDs, one per line: the output of `--quiet`.
    func ids(_ ids: [String]) throws { for id in ids { try line(id) } }

    /// Writes one JSON document: indented on a terminal, else on one line.
    func document(_ value: some Encodable) throws {
        let encoder = JSONCoding.encoder()
        if isTerminal { encoder.outputFormatting.insert(.prettyPrinted) }
        try line(Self.escaped(String(decoding: encoder.encode(SchemaDocument(value)), as: UTF8.self)))
    }

    /// Writes one JSON document on one line: an element of NDJSON.
    func jsonLine(_ value: some Encodable) throws {
        try line(Self.escaped(String(decoding: JSONCoding.encoder().encode(SchemaDocument(value)), as: UTF8.self)))
    }

    /// Writes a JSON object with the member `schema` added.
    func json(_ members: JSONObject) throws {
        var document = members
        document["schema"] = 1
        try line(Self.escaped(JSON.object(document).text))
    }

    /// The number of candidates that an error lists.
    private static let candidateLimit = 10

    /// Prints the message, the candidates and the hint. Ignores write errors.
    ///
    /// Removes control characters, because an error can repeat pasted arguments.
    func printError(_ error: CLIError) {
        let more = error.candidates.count - Self.candidateLimit
        let lines =
            [ANSIStyle.red.paint("error:", isOn: isColoured) + " " + Self.plain(error.message)]
            + error.candidates.prefix(Self.candidateLimit).map { "  " + Self.plain($0) }
            + (more > 0 ? ["  and \(more) more"] : [])
            + (error.hint.map { [ANSIStyle.bold.paint("try:", isOn: isColoured) + " " + Self.plain($0)] } ?? [])
        try? line(lines.joined(separator: "\n"))
    }

    /// Replaces control characters in every line of the text.
    static func plain(_ text: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { SanitizedText($0, limit: .max).text }
            .joined(separator: "\n")
    }

    /// Escapes control and invisible characters in JSON as `\uXXXX`.
    ///
    /// JSON requires this only for U+0000 to U+001F (RFC 8259, section 7), not for C1 and bidirectional controls.
    static func escaped(_ json: String) -> String {
        var text = String.UnicodeScalarView()
        for scalar in json.unicodeScalars {
            // Outside of strings, JSON has only safe characters and line breaks.
            if (0x20...0x7E).contains(scalar.value) || scalar == "\n" || SanitizedText.isSafe(scalar) {
                text.append(scalar)
            } else {
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16)
                    text += "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)".unicodeScalars
                }
            }
        }
        return String(text)
    }

    /// Returns the size by the variables `COLUMNS` and `LINES`, else by the terminal (ioctl_tty(2), `TIOCGWINSZ`).
    ///
    /// A terminal that does not know its rows gets the 24 rows of a VT100.
    private static func size(of descriptor: CInt, environment: [String: String]) -> Size? {
        var raw = winsize()
        let isKnown = ioctl(descriptor, UInt(TIOCGWINSZ), &raw) == 0 && raw.ws_col > 0
        guard let columns = environment["COLUMNS"].flatMap({ Int($0) }) ?? (isKnown ? Int(raw.ws_col) : nil) else {
            return nil
        }
        let rows = environment["LINES"].flatMap { Int($0) } ?? (isKnown && raw.ws_row > 0 ? Int(raw.ws_row) : 24)
        return Size(columns: columns, rows: rows)
    }
}

/// Encodes a value with the additional member `"schema": 1`, the version of the document format.
struct SchemaDocument<Content: Encodable>: Encodable {
    private enum Keys: String, CodingKey { case schema }

    let content: Content

    init(_ content: Content) { self.content = content }

    func encode(to encoder: any Encoder) throws {
        try content.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(1, forKey: .schema)
    }
}
