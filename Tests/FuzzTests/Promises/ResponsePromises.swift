@testable import Apps

/// Promises for HTTP responses of apps: how the bytes are split changes nothing, and the body is a part of what came.
enum ResponsePromises {
    private struct Result: Equatable {
        var heads: [HTTPResponseHead] = []
        var body: [UInt8] = []
        var isOver = false
        var isReusable = false
        var failure: ExchangeError?
    }

    static func check(_ input: [UInt8]) throws(Violation) {
        for mayUpgrade in [false, true] {
            let whole = read([input], mayUpgrade)
            let single = read(input.map { [$0] }, mayUpgrade)
            // A failure may come before the bytes that precede it are read as a body, and after them otherwise.
            try promise("how the bytes are split changes nothing", whole == single)
            try promise("a response has one head", whole.heads.count <= 1)
            try promise("a body is no longer than what came", whole.body.count <= input.count)
            try promise("a connection with an error is not used again", whole.failure == nil || !whole.isReusable)
            try promise(
                "an upgrade is never used again",
                !mayUpgrade || whole.heads.first?.status != 101 || !whole.isReusable
            )
        }
    }

    private static func read(_ chunks: [[UInt8]], _ mayUpgrade: Bool) -> Result {
        var parser = HTTPResponseParser(mayUpgrade: mayUpgrade)
        var result = Result()
        do throws(ExchangeError) {
            for chunk in chunks {
                parser.append(chunk)
                while let event = try parser.next() {
                    switch event {
                    case .head(let head): result.heads.append(head)
                    case .body(let part): result.body += part
                    case .end: result.isOver = true
                    }
                }
            }
            result.isReusable = parser.isReusable
        } catch { result.failure = error }
        return result
    }
}
