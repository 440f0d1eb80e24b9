import JSON

/// Server-sent events (WHATWG HTML, section 9.2) as MCP uses them: one message each, which is one line.
enum SSEEncoder {
    static func message(_ json: JSON) -> [UInt8] {
        var bytes = Array("event: message\ndata: ".utf8)
        json.append(to: &bytes)
        bytes += "\n\n".utf8
        return bytes
    }

    /// A comment, which keeps a quiet stream from being closed.
    static let comment = Array(":\n\n".utf8)

    /// How soon a reader comes back after its stream has ended, in milliseconds.
    static let retry = Array("retry: 500\n\n".utf8)
}

/// Takes an event stream apart into the data of its events (WHATWG HTML, section 9.2.6), however its bytes are cut.
///
/// Only `data` counts here: MCP uses no event names but `message`, and ids and retry times are for streams that are taken up
/// again, which an answer to a call is not.
struct SSEDecoder: Sendable {
    private var line: [UInt8] = []
    private var data: [UInt8] = []
    private var hasData = false
    private var endedWithReturn = false

    /// How many bytes came of the event that is not complete.
    var count: Int { line.count + data.count }

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
