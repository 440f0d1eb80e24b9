import Testing

@testable import Model

@Suite struct SessionTokenInputTests {
    @Test(
        arguments: [
            ("[AppReveal] Session URL: http://127.0.0.1:49213/?appreveal_session_token=ab12", "ab12", 49_213),
            ("http://[::1]:80/?x=1&appreveal_session_token=ab12&y=2", "ab12", 80),
            ("I/AppReveal: http://10.0.0.7:1?appreveal_session_token=ab12#x in the log", "ab12", 1),
            ("http://127.0.0.1/?appreveal_session_token=ab12", "ab12", nil),
            ("http://[fe80::1]/?appreveal_session_token=ab12", "ab12", nil),
            ("http://127.0.0.1:70000/?appreveal_session_token=ab12", "ab12", nil),
            ("http://127.0.0.1:0/?appreveal_session_token=ab12", "ab12", nil),
            ("http://a:1/ appreveal_session_token=ab12", "ab12", nil), ("ab12", "ab12", nil), ("", "", nil),
            ("two words", "two words", nil),
        ] as [(String, String, UInt16?)]
    )
    func `the token and the port are extracted from pasted text`(text: String, token: String, port: UInt16?) {
        let secret = SessionTokenInput(text)

        #expect(secret.token == token)
        #expect(secret.port == port)
    }

    @Test func `printing and dumping the input does not show the token`() {
        var dumped = ""
        dump(SessionTokenInput("geheim"), to: &dumped)

        #expect(!"\(SessionTokenInput("geheim"))\(dumped)".contains("geheim"))
    }
}
