/// Decodes the content coding of a response (RFC 9110, section 8.4). Some servers compress although they were not asked.
package struct ContentDecoder: Sendable {
    private let inflater: Inflater?
    private let limit: Int
    private var pending: ArraySlice<UInt8> = []
    /// The number of received bytes. This size and the one after decoding are limited.
    private var received = 0
    /// The number of decoded bytes.
    package private(set) var size = 0

    /// Indicates whether the server declared a coding.
    package var isCoded: Bool { inflater != nil }

    /// Creates a decoder.
    ///
    /// - Parameters:
    ///   - fields: The values of `Content-Encoding`.
    ///   - limit: The size limit of the body in bytes, compressed or not.
    /// - Throws: `ContentError.unknownCoding`.
    package init(_ fields: [String], limit: Int) throws(ContentError) {
        self.limit = limit
        let codings = fields.flatMap { $0.lowercased().split(separator: ",") }
            .map { $0.filter { $0 != " " && $0 != "\t" } }.filter { $0 != "identity" && !$0.isEmpty }
        guard let name = codings.first else {
            inflater = nil
            return
        }
        let coding = Inflater.Coding(rawValue: name == "x-gzip" ? "gzip" : name)
        guard codings.count == 1, let coding else { throw .unknownCoding(codings.joined(separator: ", ")) }
        inflater = Inflater(coding)
    }

    /// Adds bytes as they were received. Call `next` until it returns nil.
    ///
    /// - Throws: `ContentError.tooLarge`.
    package mutating func append(_ part: ArraySlice<UInt8>) throws(ContentError) {
        received += part.count
        guard received <= limit else { throw .tooLarge(limit: limit) }
        if let inflater { inflater.append(part) } else { pending = part }
    }

    /// Returns the next decoded bytes; nil if more are needed.
    package mutating func next() throws(ContentError) -> ArraySlice<UInt8>? {
        var part: ArraySlice<UInt8>?
        if let inflater {
            part = try inflater.next()?[...]
        } else if !pending.isEmpty {
            part = pending
            pending = []
        }
        size += part?.count ?? 0
        guard size <= limit else { throw .tooLarge(limit: limit) }
        return part
    }

    /// Returns the rest at the end of the body.
    ///
    /// - Throws: `ContentError.unfinished`.
    package func finish() throws(ContentError) -> ArraySlice<UInt8>? { try inflater?.finish()?[...] }
}

/// The reason why a body cannot be decoded.
package enum ContentError: Error, Hashable, Sendable {
    /// The name of a coding that was not asked for.
    case unknownCoding(String)
    case damaged
    case unfinished
    case tooLarge(limit: Int)
}
