import Testing

@testable import Apps

@Suite struct LineDecoderTests {
    private static func lines(_ chunks: [[UInt8]], limit: Int = 100) -> (lines: [String], rest: String, isTooLong: Bool)
    {
        var decoder = LineDecoder(limit: limit)
        var lines: [String] = []
        for chunk in chunks {
            decoder.append(chunk)
            while let event = decoder.next() {
                guard case .line(let line) = event else { return (lines, "", true) }
                lines.append(String(decoding: line, as: UTF8.self))
            }
        }
        return (lines, String(decoding: decoder.finish(), as: UTF8.self), false)
    }

    private static let heartbeat: [UInt8] = [0xF0, 0x9F, 0x92, 0x93, 0x0A, 1, 0x0A, 3, 4, 5, 6, 0x7B]

    @Test(arguments: [1, 2, 3, 7, 1_000])
    func `lines are decoded at any chunk size, and heartbeats and empty lines are skipped`(size: Int) {
        let bytes =
            Self.heartbeat + Array("{\"a\":1}\n".utf8) + Self.heartbeat + Self.heartbeat
            + Array("\r\n\n  \n[2]\r\n{\"ü\"".utf8)
        let chunks = stride(from: 0, to: bytes.count, by: size).map { Array(bytes[$0..<min($0 + size, bytes.count)]) }

        let (lines, rest, _) = Self.lines(chunks)

        #expect(lines == ["{\"a\":1}", "[2]"])
        #expect(rest == "{\"ü\"")
    }

    @Test func `a line that begins like a heartbeat is decoded`() {
        #expect(Self.lines([[0xF0, 0x9F], [0x98, 0x80, 0x0A]]).lines == ["😀"])
    }

    @Test(arguments: [[101], [50, 51], [100, 1]])
    func `a line over the limit is reported before its end`(sizes: [Int]) {
        #expect(Self.lines(sizes.map { [UInt8](repeating: 0x78, count: $0) }).isTooLong)
        #expect(Self.lines([[UInt8](repeating: 0x78, count: 100) + [0x0A]]).lines.count == 1)
        #expect(Self.lines([[UInt8](repeating: 0x78, count: 101) + [0x0A]]).isTooLong)
    }

    @Test func `the buffer is empty after a thousand lines`() {
        var decoder = LineDecoder(limit: 100)
        for _ in 0..<1_000 {
            decoder.append(Array("{\"x\":\"\(String(repeating: "y", count: 80))\"}\n{".utf8))
            while decoder.next() != nil {}
            decoder.append([0x7D, 0x0A])
            #expect(decoder.next() == .line([0x7B, 0x7D]))
        }
        #expect(decoder.partialCount == 0)
    }
}
