/// Decodes a `text/event-stream` that arrives in arbitrary chunks.
///
/// Follows the WHATWG HTML standard, section 9.2.6. Lines end in LF, CR or CRLF, even across two chunks. An empty line
/// dispatches the event. An event without data is ignored. An incomplete event at the end is dropped.
package struct SSEDecoder: Sendable {
    /// Maximum size in bytes of a line and of an event's data, to bound the memory that a broken peer can use.
    private let limit: Int
    private var line: [UInt8] = []
    private var isAfterCarriageReturn = false
    private var isFirstLine = true

    private var name = ""
    private var data: [String] = []
    private var dataBytes = 0
    /// ID of the last event. Clients send the ID to resume after a disconnect.
    package private(set) var lastID = ""
    /// Reconnection delay in milliseconds that the stream requests.
    package private(set) var retryMilliseconds: Int?

    /// Creates a decoder.
    ///
    /// - Parameter limit: Maximum size in bytes of a line, and of the data of an event.
    package init(limit: Int = 16 << 20) { self.limit = limit }

    /// Decodes the next bytes and returns the events that they complete, in order.
    ///
    /// - Throws: `ClientError.invalidResponse` when a line or an event is larger than the limit.
    package mutating func feed(_ bytes: some Sequence<UInt8>) throws(ClientError) -> [ServerSentEvent] {
        var events: [ServerSentEvent] = []
        for byte in bytes {
            if byte == UInt8(ascii: "\n"), isAfterCarriageReturn {
                isAfterCarriageReturn = false
                continue
            }
            isAfterCarriageReturn = byte == UInt8(ascii: "\r")
            if isAfterCarriageReturn || byte == UInt8(ascii: "\n") {
                if let event = try endLine() { events.append(event) }
            } else {
                line.append(byte)
                if line.count > limit { throw tooLarge }
            }
        }
        return events
    }

    private mutating func endLine() throws(ClientError) -> ServerSentEvent? {
        if isFirstLine, line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
        isFirstLine = false
        defer { line.removeAll(keepingCapacity: line.count < 64 << 10) }
        guard !line.isEmpty else { return deliver() }
        let colon = line.firstIndex(of: UInt8(ascii: ":"))
        // A line that begins with a colon is a comment, which only keeps the connection alive.
        guard colon != line.startIndex else { return nil }
        var value = colon.map { line[($0 + 1)...] } ?? []
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        try set(String(decoding: line[..<(colon ?? line.endIndex)], as: UTF8.self), to: value)
        return nil
    }

    private mutating func set(_ field: String, to value: ArraySlice<UInt8>) throws(ClientError) {
        switch field {
        case "event": name = String(decoding: value, as: UTF8.self)
        case "data":
            dataBytes += value.count + 1
            if dataBytes > limit { throw tooLarge }
            data.append(String(decoding: value, as: UTF8.self))
        case "id" where !value.contains(0): lastID = String(decoding: value, as: UTF8.self)
        case "retry":
            let isNumber = value.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            if isNumber, let number = Int(String(decoding: value, as: UTF8.self)) { retryMilliseconds = number }
        default: break
        }
    }

    private mutating func deliver() -> ServerSentEvent? {
        defer {
            name = ""
            data = []
            dataBytes = 0
        }
        guard !data.isEmpty else { return nil }
        return ServerSentEvent(name: name.isEmpty ? "message" : name, data: data.joined(separator: "\n"), id: lastID)
    }

    private var tooLarge: ClientError {
        .invalidResponse(what: "the event stream", detail: "one event is larger than \(limit) bytes")
    }
}

/// An event of a `text/event-stream`, as defined by the WHATWG HTML standard (section 9.2).
package struct ServerSentEvent: Hashable, Sendable {
    /// The value of `event:`; `message` by default.
    package let name: String
    package let data: String
    /// The last `id:` in the stream so far; empty when there was none.
    package let id: String

    package init(name: String, data: String, id: String) {
        self.name = name
        self.data = data
        self.id = id
    }
}
