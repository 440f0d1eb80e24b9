import Model

/// Decodes the content coding of a response (RFC 9110, section 8.4). Some servers compress although they were not asked.
struct ContentDecoder: Sendable {
    private let inflater: Inflater?
    private let limit: Int
    private var pending: ArraySlice<UInt8> = []
    /// The number of received bytes. This size and the one after decoding are limited.
    private var received = 0
    /// The number of decoded bytes.
    private(set) var size = 0

    /// Indicates whether the server declared a coding.
    var isCoded: Bool { inflater != nil }

    /// Creates a decoder.
    ///
    /// - Parameters:
    ///   - fields: The values of `Content-Encoding`.
    ///   - limit: The size limit of the body in bytes, compressed or not.
    /// - Throws: `ExchangeError.invalid` for an unknown coding.
    init(_ fields: [String], limit: Int) throws(ExchangeError) {
        self.limit = limit
        let codings = fields.flatMap { $0.lowercased().split(separator: ",") }
            .map { $0.filter { $0 != " " && $0 != "\t" } }.filter { $0 != "identity" && !$0.isEmpty }
        guard let name = codings.first else {
            inflater = nil
            return
        }
        let coding = Inflater.Coding(rawValue: name == "x-gzip" ? "gzip" : name)
        guard codings.count == 1, let coding else {
            let names = SanitizedText(codings.joined(separator: ", "), limit: 40)
            throw .invalid("the content coding \(names), which was not asked for")
        }
        inflater = Inflater(coding)
    }

    /// Adds bytes as they were received. Call `next` until it returns nil.
    ///
    /// - Throws: `ExchangeError.tooLarge`.
    mutating func append(_ part: ArraySlice<UInt8>) throws(ExchangeError) {
        received += part.count
        guard received <= limit else { throw .tooLarge(limit: limit) }
        if let inflater { inflater.append(part) } else { pending = part }
    }

    /// Returns the next decoded bytes; nil if more are needed.
    mutating func next() throws(ExchangeError) -> ArraySlice<UInt8>? {
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
    /// - Throws: `ExchangeError.interrupted`.
    func finish() throws(ExchangeError) -> ArraySlice<UInt8>? { try inflater?.finish()?[...] }
}
