import Model

/// Promises for event streams: the chunks do not matter, and the memory is limited.
enum EventPromises {
    private static let limit = 256

    static func check(_ input: [UInt8]) throws(Violation) {
        var choices = Choices(input.reversed())
        let whole = try? events(input, chunk: .max, limit: .max)
        let parts = try? events(input, chunk: 1 + choices.number(below: 16), limit: .max)
        try promise("the chunks do not change the events", whole == parts && whole != nil)
        for event in whole ?? [] {
            try promise("an event is part of the stream", event.data.count <= input.count && !event.name.isEmpty)
        }
        var decoder = SSEDecoder(limit: limit)
        for byte in input {
            guard (try? decoder.append([byte])) != nil else { break }
            try promise("the memory is limited", decoder.count <= 2 * limit)
        }
    }

    private static func events(
        _ bytes: [UInt8],
        chunk: Int,
        limit: Int
    ) throws(SSEDecoder.EventTooLarge) -> [ServerSentEvent] {
        var decoder = SSEDecoder(limit: limit)
        var found: [ServerSentEvent] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            found += try decoder.append(rest.prefix(chunk))
            rest = rest.dropFirst(chunk)
        }
        return found + (try decoder.finish())
    }
}
