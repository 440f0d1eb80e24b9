import Client
import Testing

@Suite struct SSEDecoderTests {
    private func events(_ text: String, limit: Int = 1 << 20) throws -> [ServerSentEvent] {
        var parser = SSEDecoder(limit: limit)
        return try parser.feed(text.utf8)
    }

    @Test func `an empty line dispatches an event with name, data and ID`() throws {
        let events = try events("event: endpoint\nid: 7\ndata: {\"a\":1}\n\n")

        #expect(events == [ServerSentEvent(name: "endpoint", data: "{\"a\":1}", id: "7")])
    }

    @Test(arguments: ["\n", "\r", "\r\n"])
    func `LF, CR and CRLF end a line`(end: String) throws {
        let text = ["data: one", "data: two", "", "data: three", "", ""].joined(separator: end)

        #expect(try events(text).map(\.data) == ["one\ntwo", "three"])
    }

    @Test(arguments: ["\n", "\r", "\r\n"])
    func `the chunk boundaries do not change the events`(end: String) throws {
        let text = [": hello", "event: tunnels", "data: é漢", "id: 12", "", "data:x", "", ""].joined(separator: end)
        let whole = try events(text)
        let bytes = Array(text.utf8)

        for index in 0...bytes.count {
            var parser = SSEDecoder()
            let parts = try parser.feed(bytes[..<index]) + parser.feed(bytes[index...])
            #expect(parts == whole)
        }
        var parser = SSEDecoder()
        #expect(try bytes.flatMap { try parser.feed([$0]) } == whole)
        #expect(whole.count == 2)
    }

    @Test func `comments and unknown fields are ignored`() throws {
        #expect(try events(":\n: keep-alive\n\nfoo: bar\ndata: x\n\n").map(\.data) == ["x"])
    }

    @Test func `an event without data is ignored, one with empty data is dispatched`() throws {
        #expect(try events("event: endpoint\nid: 3\n\n").isEmpty)
        #expect(try events("data\n\n") == [ServerSentEvent(name: "message", data: "", id: "")])
        #expect(try events("data:\ndata:\n\n").map(\.data) == ["\n"])
    }

    @Test func `the name applies to one event, the ID to all that follow`() throws {
        let events = try events("event: a\nid: 1\ndata: x\n\ndata: y\n\nid\ndata: z\n\n")

        #expect(events.map(\.name) == ["a", "message", "message"])
        #expect(events.map(\.id) == ["1", "1", ""])
    }

    @Test func `one space after the colon is removed, a second one is kept`() throws {
        #expect(try events("data:  x\n\n").map(\.data) == [" x"])
    }

    @Test func `a byte order mark at the start is skipped`() throws {
        #expect(try events("\u{FEFF}data: x\n\n").map(\.data) == ["x"])
    }

    @Test func `an ID with a null character and a non-numeric retry are ignored`() throws {
        var parser = SSEDecoder()

        let events = try parser.feed("id: 4\nid: a\0b\nretry: soon\nretry: 250\ndata: x\n\n".utf8)

        #expect(events.map(\.id) == ["4"])
        #expect(parser.retryMilliseconds == 250)
    }

    @Test func `an incomplete event at the end is dropped`() throws {
        #expect(try events("data: x\n").isEmpty)
    }

    @Test func `bytes that are not UTF-8 become replacement characters`() throws {
        var parser = SSEDecoder()

        #expect(try parser.feed(Array("data: ".utf8) + [0xFF] + Array("\n\n".utf8)).map(\.data) == ["\u{FFFD}"])
    }

    @Test func `an endless line and an endless event are rejected`() {
        #expect(throws: ClientError.self) { try events(String(repeating: "x", count: 101), limit: 100) }
        #expect(throws: ClientError.self) { try events(String(repeating: "data: 12345\n", count: 20), limit: 100) }
    }
}
