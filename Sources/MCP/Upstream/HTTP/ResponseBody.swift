import Apps
import Model

/// Decodes the body of a response: its content coding, then server-sent events or one text.
///
/// The declared media type is a hint: the first bytes decide. JSON begins with a bracket, and an event stream with the
/// name of a field.
struct ResponseBody {
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
    private let mayBeEvents: Bool
    private var format = Format.undecided
    private var events = SSEDecoder()
    /// The decoded text; empty for an event stream.
    private(set) var text: [UInt8] = []

    /// - Throws: `ContentError` for an unknown content coding.
    init(_ head: HTTPResponseHead, limit: Int) throws(ContentError) {
        content = try head.contentDecoder(limit: limit)
        declaresEvents = head.mediaType == Self.eventStream
        declaresJSON = head.mediaType.hasSuffix("/json") || head.mediaType.hasSuffix("+json")
        // The texts of errors may begin with any word.
        mayBeEvents = declaresEvents || head.status == 200
    }

    var isEventStream: Bool { format == .events || format == .undecided && declaresEvents }
    /// The number of decoded bytes in all, and in memory.
    var size: Int { content.size }
    var heldBytes: Int { text.count + events.count }
    /// The deviations of a body that had a message.
    var deviations: [ServerDeviation.Kind] {
        let hasType = isEventStream ? declaresEvents : declaresJSON
        return (content.isCoded ? [.contentCoding] : []) + (hasType ? [] : [.contentType])
    }

    mutating func append(_ part: ArraySlice<UInt8>) throws { try content.append(part) }

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
        guard mayBeEvents, !declaresEvents else { return declaresEvents }
        if Self.eventFields.contains(where: { start.starts(with: $0.utf8) }) { return true }
        return Self.eventFields.contains { $0.utf8.starts(with: start) } ? nil : false
    }
}
