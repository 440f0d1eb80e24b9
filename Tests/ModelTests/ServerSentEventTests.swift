import Model
import Testing

@Suite struct ServerSentEventTests {
    private func events(_ text: String, limit: Int = 1 << 20) throws -> [ServerSentEvent] {
        var decoder = SSEDecoder(limit: limit)
        return try decoder.append(text.utf8)
    }

    @Test func `an empty line dispatches an event with name, data and ID`() throws {
        let events = try events("event: endpoint\nid: 7\ndata: {\"a\":1}\n\n")

        #expect(events == [ServerSentEvent(name: "endpoint", data: Array("{\"a\":1}".utf8), id: "7")])
    }

    @Test(arguments: ["\n", "\r", "\r\n"])
    func `LF, CR and CRLF end a line`(end: String) throws {
        let text = ["data: one", "data: two", "", "data: three", "", ""].joined(separator: end)

        #expect(try events(text).map(\.text) == ["one\ntwo", "three"])
    }

    @Test(arguments: ["\n", "\r", "\r\n"])
    func `the chunk boundaries do not change the events`(end: String) throws {
        let text = [": hello", "event: tunnels", "data: é漢", "id: 12", "", "data:x", "", ""].joined(separator: end)
        let whole = try events(text)
        let bytes = Array(text.utf8)

        for index in 0...bytes.count {
            var decoder = SSEDecoder()
            let parts = try decoder.append(bytes[..<index]) + decoder.append(bytes[index...])
            #expect(parts == whole)
        }
        var decoder = SSEDecoder()
        #expect(try bytes.flatMap { try decoder.append([$0]) } == whole)
        #expect(whole.count == 2)
    }

    @Test(arguments: ["data: x", "data: x\n", "data: x\r\n"])
    func `the last event counts without its empty line when the stream ends`(text: String) throws {
        var decoder = SSEDecoder()

        #expect(try decoder.append(text.utf8).isEmpty)
        #expect(try decoder.finish().map(\.text) == ["x"])
        #expect(try decoder.finish().isEmpty)
    }

    @Test func `comments and unknown fields are ignored`() throws {
        #expect(try events(":\n: keep-alive\n\nfoo: bar\ndata: x\n\n").map(\.text) == ["x"])
    }

    @Test func `an event without data is ignored, one with empty data is dispatched`() throws {
        #expect(try events("event: endpoint\nid: 3\n\n").isEmpty)
        #expect(try events("data\n\n") == [ServerSentEvent(name: "message", data: [])])
        #expect(try events("data:\ndata:\n\n").map(\.text) == ["\n"])
    }

    @Test func `the name applies to one event, the ID to all that follow`() throws {
        let events = try events("event: a\nid: 1\ndata: x\n\ndata: y\n\nid\ndata: z\n\n")

        #expect(events.map(\.name) == ["a", "message", "message"])
        #expect(events.map(\.id) == ["1", "1", ""])
    }

    @Test func `one space after the colon is removed, a second one is kept`() throws {
        #expect(try events("data:  x\n\n").map(\.text) == [" x"])
    }

    @Test func `a byte order mark at the start is skipped`() throws {
        #expect(try events("\u{FEFF}data: x\n\n").map(\.text) == ["x"])
    }

    @Test func `an ID with a null character and a non-numeric retry are ignored`() throws {
        var decoder = SSEDecoder()

        let events = try decoder.append("id: 4\nid: a\0b\nretry: soon\nretry: 250\ndata: x\n\n".utf8)

        #expect(events.map(\.id) == ["4"])
        #expect(decoder.retryMilliseconds == 250)
    }

    @Test func `an incomplete event at the end is dropped`() throws { #expect(try events("data: x\n").isEmpty) }

    @Test func `bytes that are not UTF-8 become replacement characters`() throws {
        var decoder = SSEDecoder()

        #expect(try decoder.append(Array("data: ".utf8) + [0xFF] + Array("\n\n".utf8)).map(\.text) == ["\u{FFFD}"])
    }

    @Test func `an endless line and an endless event are rejected`() {
        #expect(throws: SSEDecoder.EventTooLarge.self) { try events(String(repeating: "x", count: 101), limit: 100) }
        #expect(throws: SSEDecoder.EventTooLarge.self) {
            try events(String(repeating: "data: 12345\n", count: 20), limit: 100)
        }
    }

    @Test func `an encoded event is decoded unchanged`() throws {
        let data = Array("{\"a\":\"é\"}".utf8)
        let bytes =
            SSEEncoder.reconnectDelay(milliseconds: 500) + SSEEncoder.event("endpoint", id: 7, data: data)
            + SSEEncoder.comment + SSEEncoder.event("message", data: [])
        var decoder = SSEDecoder()

        let events = try decoder.append(bytes)

        #expect(
            events == [
                ServerSentEvent(name: "endpoint", data: data, id: "7"),
                ServerSentEvent(name: "message", data: [], id: "7"),
            ]
        )
        #expect(decoder.retryMilliseconds == 500)
    }

    @Test func `the incomplete event is counted`() throws {
        var decoder = SSEDecoder()
        #expect(try decoder.append("data: 12345\ndata: 6".utf8).isEmpty)
        #expect(decoder.count == "12345".utf8.count + "data: 6".utf8.count)
        #expect(try decoder.append("\n\n".utf8).map(\.text) == ["12345\n6"])
        #expect(decoder.count == 0)
    }
}
