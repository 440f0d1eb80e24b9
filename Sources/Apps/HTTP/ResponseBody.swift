package import Model

/// Decodes the body of a response: its content coding, then server-sent events or one text.
///
/// The declared media type is a hint: the first bytes decide. JSON begins with a bracket, and an event stream with the
/// name of a field.
package struct ResponseBody {
    private enum Format {
        case undecided
        case text
        case events
    }

    private static let eventStream = "text/event-stream"
    private static let eventFields = ["data:", "event:", "id:", "retry:", ":"]

    private var content: ContentDecoder
    private let declaresEvents: Bool
    private let declaresJSON: Bool
    /// Indicates whether the body may be an event stream without a declaration.
    private let isGuessed: Bool
    private var format: Format
    private var events = SSEDecoder()
    /// The decoded text; empty for an event stream.
    package private(set) var text: [UInt8] = []

    /// Creates the decoder of a body. Without `mayBeEvents`, the body is one text.
    ///
    /// - Throws: `ExchangeError.invalid` for an unknown content coding.
    init(_ head: HTTPResponseHead, limit: Int, mayBeEvents: Bool) throws(ExchangeError) {
        content = try ContentDecoder(head.values(of: "content-encoding"), limit: limit)
        declaresEvents = head.mediaType == Self.eventStream
        declaresJSON = head.mediaType.hasSuffix("/json") || head.mediaType.hasSuffix("+json")
        // The texts of errors may begin with any word.
        isGuessed = head.status == 200
        format = mayBeEvents ? .undecided : .text
    }

    package var isEventStream: Bool { format == .events || format == .undecided && declaresEvents }
    /// The number of decoded bytes in all, and in memory.
    package var size: Int { content.size }
    var heldBytes: Int { text.count + events.count }
    /// The deviations of a body that had a message.
    package var deviations: [ServerDeviation.Kind] {
        let hasType = isEventStream ? declaresEvents : declaresJSON
        return (content.isCoded ? [.contentCoding] : []) + (hasType ? [] : [.contentType])
    }

    mutating func append(_ part: ArraySlice<UInt8>) throws(ExchangeError) { try content.append(part) }

    /// Decodes the next bytes.
    ///
    /// - Returns: The events that they complete; nil if more bytes are needed.
    mutating func next() throws -> [ServerSentEvent]? {
        guard let part = try content.next() else { return nil }
        return try decode(part)
    }

    /// Returns the last events of an ended body. An event counts also without the empty line at its end.
    mutating func finish() throws -> [ServerSentEvent] {
        let last = try content.finish().map { try decode($0) } ?? []
        return last + (isEventStream ? try events.finish() : [])
    }

    private mutating func decode(_ part: ArraySlice<UInt8>) throws -> [ServerSentEvent] {
        if format == .events { return try events.append(part) }
        text += part
        guard format == .undecided else { return [] }
        let isEvents = isEvents()
        guard let isEvents else { return [] }
        format = isEvents ? .events : .text
        guard isEvents else { return [] }
        defer { text = [] }
        return try events.append(text)
    }

    /// Decides by the first bytes; nil if there are too few.
    private func isEvents() -> Bool? {
        let start = text.prefix(64).drop { $0 <= 0x20 || [0xEF, 0xBB, 0xBF].contains($0) }.prefix(6)
        guard let first = start.first else { return declaresEvents && text.count >= 64 ? true : nil }
        if first == UInt8(ascii: "{") || first == UInt8(ascii: "[") { return false }
        guard isGuessed, !declaresEvents else { return declaresEvents }
        if Self.eventFields.contains(where: { start.starts(with: $0.utf8) }) { return true }
        return Self.eventFields.contains { $0.utf8.starts(with: start) } ? nil : false
    }
}
