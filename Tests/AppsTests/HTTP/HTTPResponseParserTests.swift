import Testing

@testable import Apps

@Suite struct HTTPResponseParserTests {
    /// Parses the bytes in pieces of a given size.
    private static func parse(_ text: String, pieces: Int, isEnded: Bool = false) throws
        -> (status: Int?, body: String, isOver: Bool, isReusable: Bool)
    {
        var parser = HTTPResponseParser()
        var status: Int?
        var body: [UInt8] = []
        var isOver = false
        let bytes = Array(text.utf8)
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            parser.append(bytes[start..<min(bytes.count, start + pieces)])
            while let event = try parser.next() {
                switch event {
                case .head(let head): status = head.status
                case .body(let part): body += part
                case .end: isOver = true
                }
            }
        }
        if isEnded { try parser.finish() }
        return (status, String(decoding: body, as: UTF8.self), isOver, parser.isReusable)
    }

    static let whole = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        "HTTP/1.1 200\r\ncontent-length:5  \r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nX: y\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    ]

    @Test(arguments: whole, [1, 2, 7, 4_096])
    func `a response is parsed at any chunk size`(text: String, pieces: Int) throws {
        let answer = try Self.parse(text, pieces: pieces)

        #expect(answer.status == 200)
        #expect(answer.body == "hello")
        #expect(answer.isOver)
        #expect(answer.isReusable)
    }

    @Test func `a body without a length ends with the stream`() throws {
        let text = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nhello"

        #expect(try Self.parse(text, pieces: 3, isEnded: true).body == "hello")
        #expect(try !Self.parse(text, pieces: 3, isEnded: true).isReusable)
    }

    @Test func `a 204 response has no body, regardless of its length header`() throws {
        let answer = try Self.parse("HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", pieces: 100)

        #expect(answer.isOver)
        #expect(answer.body.isEmpty)
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: foo, Close\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello?",
    ])
    func `a stream with a close or with extra bytes is not reused`(text: String) throws {
        #expect(try !Self.parse(text, pieces: 100).isReusable)
    }

    @Test(arguments: [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\u{0}b\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ])
    func `malformed and ambiguous responses are rejected`(text: String) {
        #expect(throws: ExchangeError.self) { try Self.parse(text, pieces: 100) }
        #expect(throws: ExchangeError.self) { try Self.parse(text, pieces: 1) }
    }

    @Test func `a head over the size limit is rejected`() {
        let endless = "HTTP/1.1 200 OK\r\nX: " + String(repeating: "a", count: 70_000)

        #expect(throws: ExchangeError.self) { try Self.parse(endless, pieces: 4_096) }
    }

    @Test(arguments: ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "HTTP/1.1 200 OK\r\nContent-", ""])
    func `a stream that ends early is an incomplete response`(text: String) {
        #expect(throws: ExchangeError.interrupted) { try Self.parse(text, pieces: 100, isEnded: true) }
    }
}
