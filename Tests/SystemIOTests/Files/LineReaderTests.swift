import SystemIO
import Testing

@Suite struct LineReaderTests {
    @Test(arguments: [1, 2, 3, 1_000]) func `lines are the same at any chunk size`(size: Int) {
        let bytes = Array("first\n\nthird\r\nrest".utf8)
        var reader = LineReader()
        var lines: [String] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            reader.append(bytes[start..<min(start + size, bytes.count)])
            while let line = reader.next() { lines.append(String(decoding: line, as: UTF8.self)) }
        }

        #expect(lines == ["first", "", "third\r"])
        #expect(reader.rest().elementsEqual("rest".utf8))
        #expect(reader.unread.isEmpty)
    }

    @Test func `skipped bytes belong to no line`() {
        var reader = LineReader()
        reader.append(Array("a\nb\nc\n".utf8))
        reader.skip(3)

        #expect(reader.next()?.isEmpty == true)
        #expect(reader.next()?.elementsEqual("c".utf8) == true)
        #expect(reader.next() == nil)
    }
}
