/// Reads a `text/event-stream` in whatever pieces it arrives.
///
/// The rules are those of the WHATWG HTML standard, section 9.2.6: lines end in LF, CR or CRLF, even across two pieces;
/// an empty line delivers the event; an event without data is none; what stands unfinished at the end is dropped.
package struct SSEDecoder: Sendable {
    /// The most bytes that one event may have before it is delivered: the memory a broken peer can take.
    private let limit: Int
    private var line: [UInt8] = []
    private var isAfterCarriageReturn = false
    private var isFirstLine = true

    private var name = ""
    private var data: [String] = []
    private var dataBytes = 0
    /// Survives the events: it is where a client goes on after it was cut off.
    package private(set) var lastID = ""
    /// How long the stream asks its reader to wait before it connects again, in milliseconds.
    package private(set) var retryMilliseconds: Int?

    /// - Parameter limit: The most bytes of one line, and of the data of one event.
    package init(limit: Int = 16 << 20) { self.limit = limit }

    /// Takes the next bytes and returns the events that they complete, in order.
    ///
    /// - Throws: `ClientError.notUnderstood` when a line or an event is larger than the limit.
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
        // A line that starts with a colon is a comment: it only keeps the connection alive.
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
        .notUnderstood(what: "the event stream", detail: "one event is larger than \(limit) bytes")
    }
}

/// One event of a `text/event-stream`, as the WHATWG HTML standard (section 9.2) delivers it.
package struct ServerSentEvent: Hashable, Sendable {
    /// What `event:` said; `message` where it said nothing.
    package let name: String
    package let data: String
    /// The last `id:` of the stream up to here; empty when there was none.
    package let id: String

    package init(name: String, data: String, id: String) {
        self.name = name
        self.data = data
        self.id = id
    }
}
