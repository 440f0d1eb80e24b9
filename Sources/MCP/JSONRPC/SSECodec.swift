import JSON

/// Encodes server-sent events (WHATWG HTML, section 9.2). MCP sends one message per event, on one line.
enum SSEEncoder {
    /// Returns an event with a JSON-RPC message.
    static func message(_ json: JSON) -> [UInt8] {
        var bytes = Array("event: message\ndata: ".utf8)
        json.append(to: &bytes)
        bytes += "\n\n".utf8
        return bytes
    }

    /// A comment. It keeps proxies and clients from closing an idle stream.
    static let comment = Array(":\n\n".utf8)

    /// The reconnect delay for clients: 500 ms after the stream ends.
    static let retry = Array("retry: 500\n\n".utf8)
}

/// Decodes an event stream into the data of its events (WHATWG HTML, section 9.2.6). The bytes may be split anywhere.
///
/// Only the field `data` is used. MCP has no event name but `message`; IDs and retry times matter for resumable streams
/// only.
struct SSEDecoder: Sendable {
    private var line: [UInt8] = []
    private var data: [UInt8] = []
    private var hasData = false
    private var endedWithReturn = false

    /// The number of buffered bytes of the incomplete event.
    var count: Int { line.count + data.count }

    /// Decodes more bytes.
    ///
    /// - Returns: The data of the events that these bytes complete.
    mutating func append(_ bytes: some Sequence<UInt8>) -> [[UInt8]] {
        var events: [[UInt8]] = []
        for byte in bytes {
            defer { endedWithReturn = byte == 0x0D }
            switch byte {
            case 0x0A where endedWithReturn: break
            case 0x0A, 0x0D:
                if let event = endLine() { events.append(event) }
            default: line.append(byte)
            }
        }
        return events
    }

    private mutating func endLine() -> [UInt8]? {
        defer { line.removeAll(keepingCapacity: true) }
        guard !line.isEmpty else {
            defer {
                data = []
                hasData = false
            }
            return hasData ? data : nil
        }
        let name = line.prefix { $0 != UInt8(ascii: ":") }
        guard name.elementsEqual("data".utf8) else { return nil }
        var value = line.dropFirst(name.count + 1)
        if value.first == 0x20 { value.removeFirst() }
        if hasData { data.append(0x0A) }
        data += value
        hasData = true
        return nil
    }
}
