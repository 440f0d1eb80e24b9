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

    @Test(arguments: ["\n", "\r\n", "\n    ", "\n\u{1B}[0m"], [0, 1, 20, 63])
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
    ]) func `a sentence about tokens is passed through`(text: String) {
        #expect(Self.text(text).text == text)
    }

    @Test func `all parts of a JSON Web Token are removed`() {
        #expect(
            Self.text("Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.a-_9+/=. End").text
                == "Authorization: Bearer [redacted]. End"
        )
    }

    @Test func `the percent-encoded URL of an app is found`() {
        let url = "http%3A%2F%2F127.0.0.1%3A49213%2F%3Fappreveal%5Fsession%5Ftoken%3D"

        let result = Self.text("\(url)\(Self.token)%26x%3D1")

        #expect(result.text == "\(url)[redacted]%26x%3D1")
        #expect(result.found == [SessionURL(origin: Self.origin, token: Secret(Self.token))])
    }
}
