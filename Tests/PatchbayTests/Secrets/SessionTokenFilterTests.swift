import TestSupport
import Testing

@testable import patchbay

@Suite struct SessionTokenFilterTests {
    private static let token = String(repeating: "0123456789abcdef", count: 4)
    private static let line = "[AppReveal] Session URL: http://127.0.0.1:49213/?appreveal_session_token=\(token)"
    private static let session = SessionURL(origin: .loopback(49_213), token: Secret(token))

    /// An input, the output with `*` for the mark, and the ports of the found tokens.
    struct Case: CustomTestStringConvertible {
        let name: String
        let input: [UInt8]
        let output: [UInt8]
        let found: [SessionURL]

        var testDescription: String { name }

        init(_ name: String, _ input: String, _ output: String, _ found: [SessionURL] = [session]) {
            self.name = name
            self.input = Array(input.utf8)
            self.output = Array(output.replacing("*", with: "[redacted]").utf8)
            self.found = found
        }

        init(_ name: String, bytes: [UInt8]) {
            self.name = name
            (input, output, found) = (bytes, bytes, [])
        }
    }

    private static let passed = line.dropLast(64) + "*"
    private static let other = line.replacing("49213", with: "8080").replacing("0123", with: "9999")

    /// Returns a line with an escape of JSON in place of the last digit of the token.
    private static func escaped(_ line: String) -> String { #"\#(line.dropLast())\u0066"# }

    static let cases = [
        Case("a line", "before\n\(line)\nafter\n", "before\n\(passed)\nafter\n"),
        Case("the last line without its end", line, "\(passed)"),
        Case("CRLF", "\(line)\r\nafter\r\n", "\(passed)\r\nafter\r\n"),
        Case("logcat's prefix", "11-21 18:00 I/AppReveal( 42): \(line)\n", "11-21 18:00 I/AppReveal( 42): \(passed)\n"),
        Case(
            "two apps",
            "\(line)\n\(other)\n",
            "\(passed)\n\(passed.replacing("49213", with: "8080"))\n",
            [session, SessionURL(origin: .loopback(8_080), token: Secret(token.replacing("0123", with: "9999")))]
        ),
        Case("twice", "\(line) \(line)\n", "\(passed) \(passed)\n", [session, session]),
        Case(
            "coloured label",
            "\u{1B}[1;32m[AppReveal]\u{1B}[0m\(line.dropFirst(11))\n",
            "\u{1B}[1;32m[AppReveal]\u{1B}[0m\(passed.dropFirst(11))\n"
        ),
        Case(
            "coloured URL",
            "\(line.dropLast(104))\u{1B}[4m\(line.suffix(104))\u{1B}[0m\n",
            "\(line.dropLast(104))\u{1B}[4m\(passed.suffix(41))\u{1B}[0m\n"
        ),
        Case(
            "coloured token",
            "\(line.dropLast(64))\u{1B}[31m\(token)\u{1B}[m then\n",
            "\(line.dropLast(64))\u{1B}[31m*\u{1B}[m then\n"
        ),
        Case("text behind a colour behind the token", "\(line)\u{1B}[0mthen\n", "\(passed)\u{1B}[0mthen\n"),
        Case("colour in the middle", "\(line.dropLast(32))\u{1B}[0m\(line.suffix(32))\n", "\(passed)\u{1B}[0m\n"),
        Case("a hyperlink", "\u{1B}]8;;\(line)\u{1B}\\open\n", "\u{1B}]8;;\(passed)\u{1B}\\open\n"),
        Case(
            "not AppReveal's line",
            "GET /?appreveal_session_token=\(token) 401\n",
            "GET /?appreveal_session_token=* 401\n",
            []
        ),
        Case(
            "the label in another line",
            "[AppReveal] Session URL: \nhttp://127.0.0.1:1/?appreveal_session_token=abc\n",
            "[AppReveal] Session URL: \nhttp://127.0.0.1:1/?appreveal_session_token=*\n",
            []
        ),
        Case("port 0", "\(line.replacing("49213", with: "0"))", "\(passed.replacing("49213", with: "0"))", []),
        Case(
            "no token",
            "\(line.dropLast(64))\n\(line.dropLast(65))\n",
            "\(line.dropLast(64))\n\(line.dropLast(65))\n",
            []
        ),
        Case("a false start", "appreveappreveal_session_token=\(token)", "appreveappreveal_session_token=*", []),
        Case("the marker as a token", "\(line.dropLast(64))appreveal_session_token=\(token)", "\(passed)", []),
        Case("63 digits", "\(line.dropLast())\n", "\(passed)\n", []),
        Case("64 characters, one no digit", "\(line.dropLast())g\n", "\(passed)\n", []),
        Case(
            "a parameter of another name",
            "http://127.0.0.1:1/?xappreveal_session_token=\(token)",
            "http://127.0.0.1:1/?xappreveal_session_token=*",
            []
        ),
        Case(
            "a port that is none",
            "\(line.replacing("49213", with: "70000"))",
            "\(passed.replacing("49213", with: "70000"))",
            []
        ),
        Case("the end of a sentence", "\(line).\n", "\(passed).\n"),
        Case("every byte", bytes: (0...255).map { UInt8($0) } + (0...255).reversed().map { UInt8($0) }),
        Case("half an escape", "\u{1B}[31", "\u{1B}[31", []),
        Case("half a JSON escape", #"x \u00"#, #"x \u00"#, []),
        Case("backslashes", #"C:\users\x\\\\u00zz\\"#, #"C:\users\x\\\\u00zz\\"#, []),
        Case(
            "endless backslashes",
            "\(String(repeating: #"\"#, count: 300))\(line)",
            "\(String(repeating: #"\"#, count: 300))\(passed)"
        ),
        Case("a JSON escape in the token", escaped(line), "\(passed)"),
        Case("a wrong escape in the token", #"\#(line.dropLast(10))\u00g0 then"#, #"\#(passed)\u00g0 then"#, []),
        Case(
            "an escape for ever",
            "\u{1B}[\(String(repeating: "1;", count: 200))\n\(line)\n",
            "\u{1B}[\(String(repeating: "1;", count: 200))\n\(passed)\n"
        ),
    ]

    /// The log lines of AppReveal v0.10.1 on each platform, and variants by log tools.
    private static let formats = [
        "[AppReveal] Session URL: *", "2026-11-22 04:43:23.123 Shop[4711:99] [AppReveal] Session URL: *",
        "11-22 04:43:23.123  4711  4733 I AppReveal: Session URL: *", "I/AppReveal( 4711): Session URL: *",
        "[AppReveal] Tauri MCP listening at *", "[AppReveal] start ignored; already running at *",
        "[AppReveal] Bonjour suppressed (no LAN interface); MCP loopback remains available at *.", "url=\"*\",", "<*>",
        "(*)", "{\"message\":\"Session URL: *\"}", "*",
    ]

    @Test(
        arguments: formats,
        [
            "http://127.0.0.1:49213/", "https://127.0.0.1:49213/", "http://127.0.0.1:49213/mcp", "http://[::1]:49213/",
            "http://[fe80::1%25en0]:49213/", "http://127.0.0.1:49213", "http://iphone.local:49213/?x=1&",
        ]
    )
    func `a token is found in every http URL, with any surrounding text`(format: String, url: String) {
        let begin = url.hasSuffix("&") ? url : "\(url)?"
        let text = format.replacing("*", with: "\(begin)appreveal_session_token=\(Self.token)")
        let (output, found) = Self.run([Array("before\n\(text)\nafter\n".utf8)[...]])

        let expected = "before\n\(text)\nafter\n".replacing(Self.token, with: "[redacted]")
        #expect(String(decoding: output, as: UTF8.self) == expected)
        #expect(found.map(\.port) == [49_213] && found.map(\.token) == [Secret(Self.token)])
    }

    @Test func `a URL without a port has the default port of its scheme`() {
        let text =
            "http://a/?appreveal_session_token=\(Self.token) https://[::1]/?appreveal_session_token=\(Self.token)"

        #expect(Self.run([Array(text.utf8)[...]]).found.map(\.port) == [80, 443])
    }

    private static func run(_ pieces: [ArraySlice<UInt8>]) -> (output: [UInt8], found: [SessionURL]) {
        var filter = SessionTokenFilter()
        var output: [UInt8] = []
        var found: [SessionURL] = []
        for piece in pieces {
            let step = filter.feed(piece)
            output += step.passed
            found += step.found
        }
        let rest = filter.finish()
        return (output + rest.passed, found + rest.found)
    }

    @Test(arguments: cases) func `only the token is removed`(sample: Case) {
        let (output, found) = Self.run([sample.input[...]])

        #expect(String(decoding: output, as: UTF8.self) == String(decoding: sample.output, as: UTF8.self))
        #expect(output == sample.output)
        #expect(found == sample.found)
    }

    @Test(arguments: cases) func `the result does not depend on how the stream is split into chunks`(sample: Case) {
        for cut in sample.input.indices {
            let (output, found) = Self.run([sample.input[..<cut], sample.input[cut...]])
            #expect(output == sample.output)
            #expect(found == sample.found)
        }
        let (output, found) = Self.run(sample.input.indices.map { sample.input[$0...$0] })
        #expect(output == sample.output)
        #expect(found == sample.found)
    }

    @Test func `each byte is passed through without waiting for the next`() {
        let input = Array("x\n\(Self.line)\nafter".utf8)
        let first = input.count - 6 - Self.token.utf8.count
        var filter = SessionTokenFilter()

        for (index, byte) in input.enumerated() {
            let passed = filter.feed([byte]).passed
            switch index {
            case first: #expect(passed == SessionTokenFilter.mark)
            case first..<(input.count - 6): #expect(passed.isEmpty)
            default: #expect(passed == [byte])
            }
        }
    }

    @Test func `a line of any length is passed through, and its token is found`() {
        let long = String(repeating: "x", count: 3_000_000)
        let (output, found) = Self.run([Array("\(long)\(Self.line) \(long)".utf8)[...]])

        #expect(output == Array("\(long)\(Self.passed.replacing("*", with: "[redacted]")) \(long)".utf8))
        #expect(found == [Self.session])
    }

    @Test func `an endless token uses bounded memory and is not reported`() {
        let (output, found) = Self.run([Array("\(Self.line)\(String(repeating: "f", count: 3_000_000))\n".utf8)[...]])

        #expect(output == Array("\(Self.passed.replacing("*", with: "[redacted]"))\n".utf8))
        #expect(found.isEmpty)
    }

    /// Compares random streams of relevant fragments with a regular expression.
    @Test(arguments: 0..<300) func `a regular expression removes the same bytes`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let parts = [
            "appreveal_session_token=", "appreveal_session", "_token=", "[AppReveal] Session URL: http://",
            "127.0.0.1:80/?",
            "a", "f0", "\n", " ", "\r\n", "é", "\u{0}", "&x=1", "appreve",
        ]
        let text = (0..<40).map { _ in parts[Int.random(in: parts.indices, using: &generator)] }.joined()
        var pieces: [ArraySlice<UInt8>] = []
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = min(rest.count, Int.random(in: 1...20, using: &generator))
            pieces.append(rest.prefix(count))
            rest = rest.dropFirst(count)
        }

        // A line break with an indentation may be anywhere in the marker.
        let marker = "appreveal_session_token=".map { String($0) }.joined(separator: #"(?:[\x00\r]|\n[\x00\r\n ]*)*"#)
        let word = "[0-9A-Za-z_~=%-]"
        let expression = try Regex(
            #"(\#(marker)[ =\x00]*)\#(word)+(?:\x00+\#(word)+)*"#,
            as: (Substring, Substring).self
        )
        .matchingSemantics(.unicodeScalar)
        let expected = text.replacing(expression) { "\($0.1)[redacted]" }

        #expect(String(decoding: Self.run(pieces).output, as: UTF8.self) == expected)
    }
}

extension SessionURL.Origin {
    static func loopback(_ port: UInt16) -> Self { Self(host: "127.0.0.1", port: port) }
}
