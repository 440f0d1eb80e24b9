import Testing

@testable import MCP

@Suite struct LineDecoderTests {
    private static func lines(_ chunks: [[UInt8]], limit: Int = 100) -> (lines: [String], rest: String, isTooLong: Bool)
    {
        var parser = LineDecoder(limit: limit)
        var lines: [String] = []
        for chunk in chunks {
            parser.append(chunk)
            while let event = parser.next() {
                guard case .line(let line) = event else { return (lines, "", true) }
                lines.append(String(decoding: line, as: UTF8.self))
            }
        }
        return (lines, String(decoding: parser.finish(), as: UTF8.self), false)
    }

    private static let heartbeat: [UInt8] = [0xF0, 0x9F, 0x92, 0x93, 0x0A, 1, 0x0A, 3, 4, 5, 6, 0x7B]

    @Test(arguments: [1, 2, 3, 7, 1_000])
    func `lines come out whole, however they are cut, and heartbeats and empty ones do not`(size: Int) {
        let bytes =
            Self.heartbeat + Array("{\"a\":1}\n".utf8) + Self.heartbeat + Self.heartbeat
            + Array("\r\n\n  \n[2]\r\n{\"ü\"".utf8)
        let chunks = stride(from: 0, to: bytes.count, by: size).map { Array(bytes[$0..<min($0 + size, bytes.count)]) }

        let (lines, rest, _) = Self.lines(chunks)

        #expect(lines == ["{\"a\":1}", "[2]"])
        #expect(rest == "{\"ü\"")
    }

    @Test func `what only begins like a heartbeat is a line`() {
        #expect(Self.lines([[0xF0, 0x9F], [0x98, 0x80, 0x0A]]).lines == ["😀"])
    }

    @Test(arguments: [[101], [50, 51], [100, 1]])
    func `a line that is too long is told before its end has come`(sizes: [Int]) {
        #expect(Self.lines(sizes.map { [UInt8](repeating: 0x78, count: $0) }).isTooLong)
        #expect(Self.lines([[UInt8](repeating: 0x78, count: 100) + [0x0A]]).lines.count == 1)
        #expect(Self.lines([[UInt8](repeating: 0x78, count: 101) + [0x0A]]).isTooLong)
    }

    @Test func `a thousand lines leave nothing behind`() {
        var parser = LineDecoder(limit: 100)
        for _ in 0..<1_000 {
            parser.append(Array("{\"x\":\"\(String(repeating: "y", count: 80))\"}\n{".utf8))
            while parser.next() != nil {}
            parser.append([0x7D, 0x0A])
            #expect(parser.next() == .line([0x7B, 0x7D]))
        }
        #expect(!parser.isInside)
    }
}
