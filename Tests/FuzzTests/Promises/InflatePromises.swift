import Apps

/// Promises for compressed bodies: the chunks do not matter, and each step is bounded.
enum InflatePromises {
    /// The size at which a caller stops, in bytes.
    private static let limit = 1 << 20

    static func check(_ input: [UInt8]) throws(Violation) {
        for coding in [Inflater.Coding.gzip, .deflate] {
            let whole = try decode(input, as: coding, chunk: .max)
            var choices = Choices(input.reversed())
            let parts = try decode(input, as: coding, chunk: 1 + choices.number(below: 32))
            // At the limit the caller stops, possibly before damage.
            let isLimited = whole?.count == limit || parts?.count == limit
            try promise("the chunks do not change the body", parts == whole || isLimited)
        }
    }

    /// Returns the decoded bytes up to the limit; nil for an error.
    private static func decode(_ bytes: [UInt8], as coding: Inflater.Coding, chunk: Int) throws(Violation) -> [UInt8]? {
        let inflater = Inflater(coding)
        var decoded: [UInt8] = []
        var rest = bytes[...]
        do throws(ExchangeError) {
            while !rest.isEmpty {
                inflater.append(rest.prefix(chunk))
                rest = rest.dropFirst(chunk)
                while let part = try inflater.next() {
                    guard part.count <= max(Inflater.step, bytes.count), !part.isEmpty else {
                        throw ExchangeError.interrupted
                    }
                    decoded += part
                    if decoded.count > limit { return Array(decoded.prefix(limit)) }
                }
            }
            return decoded + (try inflater.finish() ?? [])
        } catch { return nil }
    }
}
