import Testing

@testable import patchbay

/// Every form in which a token may stand in a log.
@Suite struct TokenFormTests {
    private static let token = String(repeating: "0123456789abcdef", count: 4)
    private static let origin = SessionURL.Origin.loopback(49_213)

    /// Texts with `*` in place of the token.
    private static let forms = [
        "Authorization: Bearer *\n", "authorization: bearer *\r\n", #"{"Authorization":"Bearer *"}"#,
        #"["Authorization": "Bearer *", "x": 1]"#, "{Authorization=[Bearer *]}",
        "curl -H 'Authorization: Bearer *' http://a",
        "Authorization=Bearer%20*&x=1", "Bearer\t*.", "AUTHORIZATION: BEARER *\n",
        "X-AppReveal-Session: *\n", "x-appreveal-session=*", #""X-AppReveal-Session":"*","#, "X-APPREVEAL-SESSION: *",
        "x-appreveal-session: [*]", #"("x-appreveal-session", "*")"#,
        "appreveal%5Fsession%5Ftoken=*\n", "appreveal%5fsession%5ftoken%3D*%26x%3D1",
        "appreveal%255Fsession%255Ftoken%253D*\n",
        "APPREVEAL_SESSION_TOKEN=*\n", "AppReveal_Session_Token=*", #"{"appreveal_session_token":"*"}"#,
        #"{\"appreveal_session_token\": \"*\"}"#, "appreveal_session_token: *",
        #"{"msg":"\"appreveal_session_token\u0022:\u0020\"*\""}"#, #"appreveal\u005Fsession\x5ftoken\u003D*\u0026x=1"#,
        #"X-AppReveal-Session\\u003a *"#, #"appreveal_session_token\\\\u003d*\\\\u0026x\u003d1"#,
        "Authorization: \u{1B}[1mBea\u{1B}[0mrer \u{1B}[32m*\u{1B}[0m", "appreveal_session\n_token=*",
        "x-app\r\n   reveal-session: *",
        // Objects and pairs that name the header, and bytes of Python.
        #"{"name":"X-AppReveal-Session","value":"*"}"#, "{\"name\": \"X-AppReveal-Session\",\n  \"value\": \"*\"\n}",
        #"<header name="X-AppReveal-Session" value="*"/>"#, "{b'X-AppReveal-Session': b'*'}",
        #""X-AppReveal-Session"=>"*""#, "X-AppReveal-Session -> *", #"["X-AppReveal-Session": Optional("*")]"#,
        "X-AppReveal-Session:\n  - *", "HTTP_X_APPREVEAL_SESSION=*",
        // Escapes of HTML and of an escape.
        "{&quot;X-AppReveal-Session&quot;: &quot;*&quot;}", "appreveal_session_token&#61;*",
        "appreveal_session_token&#x3D;*",
        "&amp;quot;X-AppReveal-Session&amp;quot;:&amp;quot;*&amp;quot;", #"appreveal_session_token\u005cu003d*"#,
        "appreveal_session_token%5Cu003d*", "Authorization: Bearer\n *", "Authorization: Bearer\r\n*",
    ]

    /// Feeds the filter byte by byte.
    private static func run(_ input: some Sequence<UInt8>) -> (output: [UInt8], found: [SessionURL], redactions: Int) {
        var filter = SessionTokenFilter()
        var output: [UInt8] = []
        var found: [SessionURL] = []
        for byte in input {
            let step = filter.feed([byte])
            output += step.passed
            found += step.found
        }
        let rest = filter.finish()
        return (output + rest.passed, found + rest.found, filter.redactions)
    }

    private static func text(_ text: String) -> (text: String, found: [SessionURL], redactions: Int) {
        let (output, found, redactions) = run(Array(text.utf8))
        return (String(decoding: output, as: UTF8.self), found, redactions)
    }

    @Test(arguments: forms) func `the token is removed, and nothing else`(form: String) {
        let result = Self.text("before\n\(form.replacing("*", with: Self.token)) after\n")

        #expect(result.text == "before\n\(form.replacing("*", with: "[redacted]")) after\n")
        #expect(result.redactions == 1)
    }

    @Test(arguments: forms, [false, true]) func `the token is removed from UTF-16 text`(form: String, isBigEndian: Bool)
    {
        func bytes(_ text: String) -> [UInt8] {
            text.utf16.flatMap {
                isBigEndian ? [UInt8($0 >> 8), UInt8($0 & 0xFF)] : [UInt8($0 & 0xFF), UInt8($0 >> 8)]
            }
        }

        let result = Self.run(bytes("before\n\(form.replacing("*", with: Self.token)) after\n"))

        #expect(result.output == bytes("before\n\(form.replacing("*", with: "[redacted]")) after\n"))
    }

    @Test(arguments: ["\u{0}", "\u{AD}", "\u{200B}", "\u{FEFF}", "\u{0}\u{AD}"])
    func `a character that is not shown does not end a token`(inserted: String) {
        let split = Self.token.prefix(20) + inserted + Self.token.dropFirst(20)

        let result = Self.text("http://127.0.0.1:49213/?appreveal_session_token=\(split)\(inserted) after")

        #expect(result.text == "http://127.0.0.1:49213/?appreveal_session_token=[redacted]\(inserted) after")
        #expect(result.found == [SessionURL(origin: Self.origin, token: Secret(Self.token))])
    }

    @Test(arguments: ["\n", "\r\n", "\n    ", "\n\u{1B}[0m", "\n> ", "\n| ", "\\\n"], [0, 1, 20, 63])
    func `the rest of a token in the next line is removed`(lineBreak: String, length: Int) {
        let (first, rest) = (Self.token.prefix(length), Self.token.dropFirst(length))

        let result = Self.text("http://127.0.0.1:49213/?appreveal_session_token=\(first)\(lineBreak)\(rest)\nafter")

        #expect(!result.text.contains("0123") && result.text.hasSuffix("\nafter"))
        #expect(result.redactions == 1)
        #expect(result.found == [SessionURL(origin: Self.origin, token: Secret(Self.token))])
    }

    @Test func `a token over three lines is removed`() {
        let (one, two, three) = (Self.token.prefix(20), Self.token.dropFirst(20).prefix(20), Self.token.suffix(24))

        let result = Self.text("http://127.0.0.1:49213/?appreveal_session_token=\(one)\n\(two)\n\(three)\nafter")

        #expect(result.text == "http://127.0.0.1:49213/?appreveal_session_token=[redacted]\n\n\nafter")
        #expect(result.found == [SessionURL(origin: Self.origin, token: Secret(Self.token))])
    }

    @Test(arguments: [
        "appreveal_session_token=abc\nafter\n", "appreveal_session_token=abc\nface off\n", "appreveal_session_token=\n",
        "appreveal_session_token=abc\n1732268603.123 start\n",
        "appreveal_session_token=abc\ndeadbeefdeadbeefdeadbeef-1",
    ]) func `a line after a short token is passed through`(text: String) {
        #expect(Self.text(text).text == text.replacing("abc", with: "[redacted]"))
    }

    @Test(arguments: [
        "the bearer token is missing", "Bearer authentication failed",
        "the appreveal_session_token parameter is missing",
        #"WWW-Authenticate: Bearer resource_metadata="https://a/.well-known/x", error="invalid_token""#,
        "x-appreveal-session-id: 5", "forbearers are many", "a bearer\nabcdefgh0123456789",
        #"["X-AppReveal-Session",\#n "Content-Type"]"#,
        #"{"X-AppReveal-Session":"none","Content-Type":"application/json"}"#,
        "curl -H 'X-AppReveal-Session: none' http://127.0.0.1:8080/", #"X-AppReveal-Session: C:\export\033"#,
        "X-AppReveal-Session is 100%25 & needed", "a bearer\nAccess-Control-Allow-Origin2: x",
    ]) func `a sentence about tokens is passed through`(text: String) { #expect(Self.text(text).text == text) }

    @Test func `all parts of a JSON Web Token are removed`() {
        #expect(
            Self.text("Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.a-_9+/=. End").text
                == "Authorization: Bearer [redacted]. End"
        )
    }

    @Test(arguments: ["\n", "\r\n", #"\n"#], [20, 33, 36, 70])
    func `a JSON Web Token is removed that is wrapped to lines`(lineBreak: String, width: Int) {
        let token =
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV"
        var lines: [Substring] = []
        var rest = token[...]
        while !rest.isEmpty {
            lines.append(rest.prefix(width))
            rest = rest.dropFirst(width)
        }

        for prefix in ["Bearer ", "Authorization: Bearer\n", "X-AppReveal-Session: "] {
            let result = Self.text("\(prefix)\(lines.joined(separator: lineBreak))\nContent-Type: x")

            let breaks = String(repeating: lineBreak, count: lines.count - 1)
            #expect(result.text == "\(prefix)[redacted]\(breaks)\nContent-Type: x")
        }
    }

    @Test(arguments: [2, 5, 11]) func `a JSON Web Token is removed that is cut behind its first characters`(length: Int)
    {
        let token =
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV"

        let text = Self.text("Bearer \(token.prefix(length))\n\(token.dropFirst(length)) x").text

        #expect(text == "Bearer \(token.prefix(length))\n[redacted] x")
    }

    @Test(arguments: [
        "Content-Type: x", "X-Request-Identifier2: x", "com.example.shop.MainActivity started", "GET /Path1/to/file",
        "2026-11-22T04:43:23Z start", "Short1.",
    ]) func `a line after a bearer token is passed through`(line: String) {
        #expect(Self.text("Bearer abcDEF0123456789xyz\n\(line)").text == "Bearer [redacted]\n\(line)")
    }

    @Test(arguments: ["%", "%25", "%2525"])
    func `a token with percent-encoded digits is removed and found`(percent: String) {
        let encoded = Self.token.utf8.map { "\(percent)\(String($0, radix: 16))" }.joined()

        let result = Self.text("http://127.0.0.1:49213/?appreveal_session_token=\(encoded)%26x")

        #expect(result.text == "http://127.0.0.1:49213/?appreveal_session_token=[redacted]%26x")
        #expect(result.found == [SessionURL(origin: Self.origin, token: Secret(Self.token))])
        #expect(Self.text("appreveal_session_token=ab%2Bc%2Fd%3D x").text == "appreveal_session_token=[redacted] x")
    }

    @Test func `a no-break space separates a token, and an 8-bit control sequence does not end it`() {
        let split = "\(Self.token.prefix(20))\u{9B}31m\(Self.token.dropFirst(20))"

        #expect(Self.text("Bearer\u{A0}\(split) x").text == "Bearer\u{A0}[redacted]\u{9B}31m x")
    }

    @Test func `the percent-encoded URL of an app is found`() {
        let url = "http%3A%2F%2F127.0.0.1%3A49213%2F%3Fappreveal%5Fsession%5Ftoken%3D"

        let result = Self.text("\(url)\(Self.token)%26x%3D1")

        #expect(result.text == "\(url)[redacted]%26x%3D1")
        #expect(result.found == [SessionURL(origin: Self.origin, token: Secret(Self.token))])
    }

    /// The URL of an app in logs that escape, colour or wrap it. `*` stands for the token.
    private static let escapedURLs = [
        #"{"eventMessage":"[AppReveal] Session URL: http:\/\/127.0.0.1:49213\/?appreveal_session_token=*"}"#,
        #"{"msg":"http://127.0.0.1:49213/?a=1\u0026appreveal_session_token=*\u0026b=2"}"#,
        #"{"msg":"http://127.0.0.1:49213/?appreveal_session_token\u003d*"}"#,
        #"{"msg":"http:\\/\\/127.0.0.1:49213\\/?a\\u003d1\\u0026appreveal_session_token\\u003D*\\n"}"#,
        #"{"log":"{\"msg\":\"http:\\\/\\\/127.0.0.1:49213\\\/?appreveal_session_token\\\u003d*\"}"}"#,
        #"{"msg":"\u001b[32mhttp\u001b[0m://127.0.0.1:49213/?\u001B[4mappreveal_session_token=\u001b[1m*\u001b[0m"}"#,
        #"'\x1b[32mhttp://127.0.0.1:49213/?appreveal_session_token=\x1b[0m*\x1b[0m\n'"#,
        "http://127.0.0.1:49213/?a=1&amp;appreveal_session_token=*&amp;b=2",
        "http://127.0.0.1:49\n213/?appreveal_session_token=* x",
        "http://127.0.0.1:49213/?appreveal_ses\r\nsion_token=* x",
        "a http://127.0.0.1:49213/?app\n    reveal_session_token=* x",
        "http://127.0.0.1:49213/?appreveal_session_token\n=* x",
    ]

    @Test(arguments: escapedURLs, [false, true])
    func `the URL of an app is found in a log that escapes, colours or wraps it`(form: String, isUTF16: Bool) {
        func bytes(_ text: String) -> [UInt8] {
            isUTF16 ? [0xFF, 0xFE] + text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] } : Array(text.utf8)
        }
        let text = "before\n\(form)\nafter\n"

        let result = Self.run(bytes(text.replacing("*", with: Self.token)))

        #expect(result.output == bytes(text.replacing("*", with: "[redacted]")))
        #expect(result.found == [SessionURL(origin: Self.origin, token: Secret(Self.token))])
    }

    /// What can stand in the middle of a token, and what of it stays behind the mark.
    private static let interruptions: [(inserted: String, kept: String)] = [
        ("\u{1B}[1m", "\u{1B}[1m"), ("\u{1B}[1;31m\u{1B}[0m", "\u{1B}[1;31m\u{1B}[0m"), (#"\u001b[7m"#, #"\u001b[7m"#),
        (#"\\u001b[7m"#, #"\\u001b[7m"#), (#"\u200b"#, ""), (#"\u0000"#, ""), (#"\033[31m"#, #"\033[31m"#),
        (#"\e[31m"#, #"\e[31m"#), (#"\\E[31m"#, #"\\E[31m"#), (#"\U0000001b[31m"#, #"\U0000001b[31m"#),
        ("^[[31m", "^[[31m"), ("%1B[31m", "%1B[31m"),
    ]

    @Test(arguments: interruptions, [1, 15, 40, 63])
    func `a colour in the middle leaves no part of a token`(
        interruption: (inserted: String, kept: String),
        length: Int
    ) {
        let encodings: [(String) -> [UInt8]] = [
            { Array($0.utf8) }, { $0.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } },
            { $0.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] } },
        ]
        let split = Self.token.prefix(length) + interruption.inserted + Self.token.dropFirst(length)

        for bytes in encodings {
            for prefix in ["http://127.0.0.1:49213/?appreveal_session_token=", "Authorization: Bearer "] {
                let result = Self.run(bytes("\(prefix)\(split) after"))
                #expect(result.output == bytes("\(prefix)[redacted]\(interruption.kept) after"))
                #expect(result.found.count == (prefix.hasPrefix("http") ? 1 : 0))
            }
        }
    }

    @Test(arguments: ["\n", #"\n"#, #"\\r\\n"#, "\n  \u{1B}[0m"])
    func `a colour in the rest of a wrapped token leaves no part of it`(lineBreak: String) {
        let (first, middle, last) = (Self.token.prefix(20), Self.token.dropFirst(20).prefix(4), Self.token.suffix(40))
        let url = "http://127.0.0.1:49213/?appreveal_session_token="
        let encodings: [(String) -> [UInt8]] = [
            { Array($0.utf8) }, { $0.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } },
            { $0.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] } },
        ]

        for bytes in encodings {
            let result = Self.run(bytes("\(url)\(first)\(lineBreak)\(middle)\u{1B}[1m\(last) after"))
            #expect(result.output == bytes("\(url)[redacted]\(lineBreak)\u{1B}[1m after"))
            #expect(result.found == [SessionURL(origin: Self.origin, token: Secret(Self.token))])
        }
    }

    @Test(arguments: [2, 10, 15, 16, 63]) func `a wrapped bearer token is removed, however short its first line is`(
        length: Int
    ) {
        let text = "Bearer \(Self.token.prefix(length))\n\(Self.token.dropFirst(length)) after"

        #expect(Self.text(text).text == "Bearer [redacted]\n after")
    }

    @Test func `a word with endless colours uses bounded memory`() {
        let colours = String(repeating: "\u{1B}[1m", count: 100_000)

        #expect(Self.text("Bearer ab\(colours) after").text.hasSuffix("\u{1B}[1m after"))
        #expect(Self.text("appreveal_session_token=ab\n1\(colours)2 after").text.hasSuffix("\u{1B}[1m2 after"))
    }
}
