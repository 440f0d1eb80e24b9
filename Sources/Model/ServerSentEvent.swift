/// An event of a `text/event-stream`, as defined by the WHATWG HTML standard (section 9.2).
package struct ServerSentEvent: Hashable, Sendable {
    /// The value of `event:`; `message` by default.
    package let name: String
    package let data: [UInt8]
    /// The last `id:` in the stream so far; empty when there was none.
    package let id: String

    package init(name: String, data: [UInt8], id: String = "") {
        self.name = name
        self.data = data
        self.id = id
    }

    /// The data as text. Bytes that are not UTF-8 become U+FFFD.
    package var text: String { String(decoding: data, as: UTF8.self) }
}

/// Encodes a `text/event-stream` (WHATWG HTML, section 9.2).
package enum SSEEncoder {
    /// A comment. It keeps proxies and clients from closing an idle stream.
    package static let comment = Array(":\n\n".utf8)

    /// Returns an event. The data must be one line, such as a JSON document.
    package static func event(_ name: String, id: UInt64? = nil, data: some Collection<UInt8>) -> [UInt8] {
        var bytes = Array(((id.map { "id: \($0)\n" } ?? "") + "event: \(name)\ndata: ").utf8)
        bytes.reserveCapacity(bytes.count + data.count + 2)
        bytes += data
        bytes += "\n\n".utf8
        return bytes
    }

    /// Returns the delay after which clients connect again when the stream has ended.
    package static func reconnectDelay(milliseconds: Int) -> [UInt8] { Array("retry: \(milliseconds)\n\n".utf8) }
}

/// Decodes a `text/event-stream` that arrives in arbitrary chunks.
///
/// Follows the WHATWG HTML standard, section 9.2.6. Lines end in LF, CR or CRLF, even across two chunks. An empty line
/// dispatches the event. An event without data is ignored. An incomplete event at the end is dropped.
package struct SSEDecoder: Sendable {
    /// A line, or the data of an event, is larger than the limit in bytes.
    package struct EventTooLarge: Error, Hashable {
        package let limit: Int
    }

    private let limit: Int
    private var line: [UInt8] = []
    private var isAfterCarriageReturn = false
    private var isFirstLine = true

    private var name = ""
    /// The data of the incomplete event; nil before its first line of data.
    private var data: [UInt8]?
    /// ID of the last event. Clients send the ID to resume after a disconnect.
    package private(set) var lastID = ""
    /// Reconnection delay in milliseconds that the stream requests.
    package private(set) var retryMilliseconds: Int?

    /// Creates a decoder.
    ///
    /// - Parameter limit: Maximum size in bytes of a line, and of the data of an event. It bounds the memory that a
    ///   broken peer can use.
    package init(limit: Int = .max) { self.limit = limit }

    /// The number of buffered bytes of the incomplete event.
    package var count: Int { line.count + (data?.count ?? 0) }

    /// Decodes the next bytes and returns the events that they complete, in order.
    package mutating func append(_ bytes: some Sequence<UInt8>) throws(EventTooLarge) -> [ServerSentEvent] {
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
                if line.count > limit { throw EventTooLarge(limit: limit) }
            }
        }
        return events
    }

    /// Ends the stream, for a peer that leaves out the empty line after its last event.
    package mutating func finish() throws(EventTooLarge) -> [ServerSentEvent] {
        if !line.isEmpty { _ = try endLine() }
        return endEvent().map { [$0] } ?? []
    }

    private mutating func endLine() throws(EventTooLarge) -> ServerSentEvent? {
        if isFirstLine, line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
        isFirstLine = false
        defer { line.removeAll(keepingCapacity: line.count < 64 << 10) }
        guard !line.isEmpty else { return endEvent() }
        let colon = line.firstIndex(of: UInt8(ascii: ":"))
        // A line that begins with a colon is a comment, which only keeps the connection alive.
        guard colon != line.startIndex else { return nil }
        var value = colon.map { line[($0 + 1)...] } ?? []
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        try set(String(decoding: line[..<(colon ?? line.endIndex)], as: UTF8.self), to: value)
        return nil
    }

    private mutating func set(_ field: String, to value: ArraySlice<UInt8>) throws(EventTooLarge) {
        switch field {
        case "event": name = String(decoding: value, as: UTF8.self)
        case "data":
            // The data itself is mutated, so that it is not copied for each line.
            if data == nil { data = [] } else { data?.append(UInt8(ascii: "\n")) }
            data?.append(contentsOf: value)
            if data?.count ?? 0 >= limit { throw EventTooLarge(limit: limit) }
        case "id" where !value.contains(0): lastID = String(decoding: value, as: UTF8.self)
        case "retry":
            let isNumber = value.allSatisfy(\.isDigit)
            if isNumber, let number = Int(String(decoding: value, as: UTF8.self)) { retryMilliseconds = number }
        default: break
        }
    }

    private mutating func endEvent() -> ServerSentEvent? {
        defer { (name, data) = ("", nil) }
        return data.map { ServerSentEvent(name: name.isEmpty ? "message" : name, data: $0, id: lastID) }
    }
}
