import Client
import Testing

@Suite struct SSEDecoderTests {
    private func events(_ text: String, limit: Int = 1 << 20) throws -> [ServerSentEvent] {
        var parser = SSEDecoder(limit: limit)
        return try parser.feed(text.utf8)
    }

    @Test func `an event is name, data and id, delivered by an empty line`() throws {
        let events = try events("event: endpoint\nid: 7\ndata: {\"a\":1}\n\n")

        #expect(events == [ServerSentEvent(name: "endpoint", data: "{\"a\":1}", id: "7")])
    }

    @Test(arguments: ["\n", "\r", "\r\n"])
    func `all three ends of a line are one end`(end: String) throws {
        let text = ["data: one", "data: two", "", "data: three", "", ""].joined(separator: end)

        #expect(try events(text).map(\.data) == ["one\ntwo", "three"])
    }

    @Test(arguments: ["\n", "\r", "\r\n"])
    func `it makes no difference where the stream is cut`(end: String) throws {
        let text = [": hello", "event: tunnels", "data: é漢", "id: 12", "", "data:x", "", ""].joined(separator: end)
        let whole = try events(text)
        let bytes = Array(text.utf8)

        for cut in 0...bytes.count {
            var parser = SSEDecoder()
            let parts = try parser.feed(bytes[..<cut]) + parser.feed(bytes[cut...])
            #expect(parts == whole)
        }
        var parser = SSEDecoder()
        #expect(try bytes.flatMap { try parser.feed([$0]) } == whole)
        #expect(whole.count == 2)
    }

    @Test func `comments and unknown fields say nothing`() throws {
        #expect(try events(":\n: keep-alive\n\nfoo: bar\ndata: x\n\n").map(\.data) == ["x"])
    }

    @Test func `an event without data is none, one with empty data is one`() throws {
        #expect(try events("event: endpoint\nid: 3\n\n").isEmpty)
        #expect(try events("data\n\n") == [ServerSentEvent(name: "message", data: "", id: "")])
        #expect(try events("data:\ndata:\n\n").map(\.data) == ["\n"])
    }

    @Test func `the name holds for one event, the id for all that follow`() throws {
        let events = try events("event: a\nid: 1\ndata: x\n\ndata: y\n\nid\ndata: z\n\n")

        #expect(events.map(\.name) == ["a", "message", "message"])
        #expect(events.map(\.id) == ["1", "1", ""])
    }

    @Test func `one space after the colon belongs to the syntax, the second to the value`() throws {
        #expect(try events("data:  x\n\n").map(\.data) == [" x"])
    }

    @Test func `a byte order mark at the start is skipped`() throws {
        #expect(try events("\u{FEFF}data: x\n\n").map(\.data) == ["x"])
    }

    @Test func `an id with a zero in it and a retry that is no number are ignored`() throws {
        var parser = SSEDecoder()

        let events = try parser.feed("id: 4\nid: a\0b\nretry: soon\nretry: 250\ndata: x\n\n".utf8)

        #expect(events.map(\.id) == ["4"])
        #expect(parser.retryMilliseconds == 250)
    }

    @Test func `what is unfinished at the end is not delivered`() throws {
        #expect(try events("data: x\n").isEmpty)
    }

    @Test func `bytes that are not UTF-8 become replacement characters`() throws {
        var parser = SSEDecoder()

        #expect(try parser.feed(Array("data: ".utf8) + [0xFF] + Array("\n\n".utf8)).map(\.data) == ["\u{FFFD}"])
    }

    @Test func `an endless line and an endless event are refused`() {
        #expect(throws: ClientError.self) { try events(String(repeating: "x", count: 101), limit: 100) }
        #expect(throws: ClientError.self) { try events(String(repeating: "data: 12345\n", count: 20), limit: 100) }
    }
}
