import FoundationEssentials
import Glibc
import JSON
import Model

/// Whoever read our output has gone; the program ends without a word.
struct BrokenPipe: Error {}

/// Standard output or standard error, as lines. Each is written at once, so that a reader behind a pipe never waits.
struct Console: Sendable {
    private let descriptor: CInt
    let isTerminal: Bool
    let isColoured: Bool
    /// The columns to keep within; nil where it is not a terminal.
    let width: Int?

    init(descriptor: CInt, color: ColorChoice) {
        let environment = ProcessInfo.processInfo.environment
        self.descriptor = descriptor
        isTerminal = isatty(descriptor) == 1
        isColoured = color.isOn(environment: environment, isTerminal: isTerminal)
        width = isTerminal ? environment["COLUMNS"].flatMap { Int($0) } ?? Self.width(of: descriptor) : nil
    }

    static func standard(_ color: ColorChoice = .auto) -> Console { Console(descriptor: STDOUT_FILENO, color: color) }
    static func errors() -> Console { Console(descriptor: STDERR_FILENO, color: .auto) }

    /// - Throws: `BrokenPipe`; a `CLIError` where the output cannot be written for another reason, a full disk.
    func line(_ text: String) throws {
        if let code = BlockingThread.failure(writing: Array(text.utf8) + [UInt8(ascii: "\n")], to: descriptor) {
            guard code == EPIPE else { throw Self.unwritable(code) }
            throw BrokenPipe()
        }
    }

    private static func unwritable(_ code: CInt) -> CLIError {
        CLIError(
            status: .error,
            message: "the output cannot be written: \(String(cString: strerror(code)))",
            remedy: "make room, or write it elsewhere"
        )
    }

    /// Text without the end of a line; if nobody reads it, there is nobody to miss it.
    func write(_ text: String) { _ = BlockingThread.write(Array(text.utf8), to: descriptor) }

    func table(_ table: Table) throws { try line(table.text(width: width, isColoured: isColoured)) }

    /// One document: laid out for a person at a terminal, on one line for everything else.
    func document(_ value: some Encodable) throws {
        let encoder = JSONCoding.encoder()
        if isTerminal { encoder.outputFormatting.insert(.prettyPrinted) }
        try line(Self.escaped(String(decoding: encoder.encode(SchemaDocument(value)), as: UTF8.self)))
    }

    /// One document on one line: an element of NDJSON.
    func record(_ value: some Encodable) throws {
        try line(Self.escaped(String(decoding: JSONCoding.encoder().encode(SchemaDocument(value)), as: UTF8.self)))
    }

    /// One document that is JSON already, with what every document of ours has.
    func json(_ members: JSONObject) throws {
        var document = members
        document["schema"] = 1
        try line(Self.escaped(JSON.object(document).text))
    }

    /// Says what went wrong and what to try; if nobody listens, there is nobody to tell.
    ///
    /// A complaint often repeats what was typed, and what is typed is often pasted: a path, a name, a whole command.
    func complain(_ complaint: CLIError) {
        let lines =
            [ANSIStyle.red.paint("error:", isOn: isColoured) + " " + Self.plain(complaint.message)]
            + complaint.candidates.map { "  " + Self.plain($0) }
            + (complaint.remedy.map { [ANSIStyle.bold.paint("try:", isOn: isColoured) + " " + Self.plain($0)] } ?? [])
        try? line(lines.joined(separator: "\n"))
    }

    /// Text of several lines without anything that a terminal would obey.
    static func plain(_ text: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { SanitizedText($0, limit: .max).text }
            .joined(separator: "\n")
    }

    /// The same JSON with `\uXXXX` for every character that a terminal would obey or hide.
    ///
    /// JSON demands that of U+0000 to U+001F alone (RFC 8259, section 7), which leaves out C1 and the bidirectional ones.
    static func escaped(_ json: String) -> String {
        var text = String.UnicodeScalarView()
        for scalar in json.unicodeScalars {
            // Outside of strings JSON has only characters that are safe, and the line breaks of its layout.
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

    private static func width(of descriptor: CInt) -> Int? {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }
}

/// Any value as a document of ours: its own members, and `"schema": 1`, which says that they are these.
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
