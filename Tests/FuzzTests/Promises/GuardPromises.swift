import Tunnels

/// Promises for the first bytes of a tunnel's client: how the bytes are split changes nothing, and no request of a web page
/// passes.
enum GuardPromises {
    private static let fields = [
        "Origin: https://evil.test", "Host: evil.test", "Sec-Fetch-Site: cross-site",
        "Host: localhost\r\nHost: evil.test",
    ]

    static func check(_ input: [UInt8]) throws(Violation) {
        let whole = decision([input])
        let single = decision(input.map { [$0] })
        try promise("how the bytes are split changes nothing", whole == single)
        if case .undecided = whole { throw Violation(promise: "the end of the bytes decides") }

        var choices = Choices(input)
        let path = choices.letters(choices.number(below: 9), of: Array("abc/?=%".utf8))
        let name = choices.letters(choices.number(below: 9) + 1, of: Array("abc-".utf8))
        let page = "GET /\(path) HTTP/1.1\r\nX-\(name): \(path)\r\n\(choices.one(of: fields))\r\n\r\n"
        guard case .refused = decision([Array(page.utf8)]) else {
            throw Violation(promise: "a request of a web page is refused")
        }
        let own = "GET /\(path) HTTP/1.1\r\nHost: 127.0.0.1:\(choices.number(below: 65_536))\r\n\r\n"
        try promise("a request of a program passes", decision([Array(own.utf8)]) == .passes)
    }

    /// Evaluates more and more bytes, as they arrive, until there is a decision.
    private static func decision(_ chunks: [[UInt8]]) -> BrowserGuard.Decision {
        var browserGuard = BrowserGuard(address: nil)
        var bytes: [UInt8] = []
        for chunk in chunks {
            bytes += chunk
            let decision = bytes.withUnsafeBytes { browserGuard.evaluate($0) }
            if case .undecided = decision { continue }
            return decision
        }
        return bytes.withUnsafeBytes { browserGuard.evaluate($0, isComplete: true) }
    }
}
