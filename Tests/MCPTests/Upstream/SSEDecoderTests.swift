import Testing

@testable import MCP

@Suite struct SSEDecoderTests {
    private static func events(_ text: String, pieces: Int) -> [String] {
        var stream = SSEDecoder()
        let bytes = Array(text.utf8)
        return stride(from: 0, to: bytes.count, by: pieces).flatMap { start in
            stream.append(bytes[start..<min(bytes.count, start + pieces)]).map { String(decoding: $0, as: UTF8.self) }
        }
    }

    @Test(arguments: ["\n", "\r", "\r\n"], [1, 3, 1_000])
    func `events are decoded with every line break and any chunk size`(lineBreak: String, pieces: Int) {
        let lines = [
            ": a comment", "event: message", "id: 7", "data: {\"a\":", "data:1}", "", "retry: 5", "", "data", "",
            "data: é", "",
            "data: unfinished",
        ]

        let text = lines.joined(separator: lineBreak)

        #expect(Self.events(text, pieces: pieces) == ["{\"a\":\n1}", "", "é"])
    }
}
