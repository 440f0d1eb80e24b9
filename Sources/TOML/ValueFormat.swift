package import Model

/// The written form of a value in a TOML file.
package struct ValueFormat<Value>: Sendable {
    /// The valid values, as a continuation of "must be".
    package let shape: String
    /// Returns the value; nil if it is invalid.
    package let parse: @Sendable (JSON) -> Value?
    /// Returns the written value; nil for an absent one.
    package let json: @Sendable (Value) -> JSON?
    /// Returns the value of a key; nil if the key is absent.
    package let read: @Sendable (TOMLTable, _ key: String) throws(TOMLError) -> Value?

    package init(
        _ shape: String,
        parse: @escaping @Sendable (JSON) -> Value?,
        json: @escaping @Sendable (Value) -> JSON?,
        read: (@Sendable (TOMLTable, _ key: String) throws(TOMLError) -> Value?)? = nil
    ) {
        self.shape = shape
        self.parse = parse
        self.json = json
        if let read {
            self.read = read
        } else {
            self.read = { (table, key) throws(TOMLError) in try table.optional(key, shape, parse) }
        }
    }

    /// A value that may be absent.
    package static func optional<Wrapped>(_ format: ValueFormat<Wrapped>) -> Self where Value == Wrapped? {
        Self(format.shape, parse: { json in format.parse(json).map { $0 } }, json: { $0.flatMap(format.json) })
    }

    /// A list, whose errors name the element.
    package static func list<Element>(of format: ValueFormat<Element>) -> Self where Value == [Element] {
        Self(
            format.shape,
            parse: { $0.array?.compactMap(format.parse) },
            json: { .array($0.compactMap(format.json)) },
            read: { (table, key) throws(TOMLError) in
                table.values[key] == nil ? nil : try table.list(key, of: format.shape, format.parse)
            }
        )
    }
}

extension ValueFormat where Value: CustomStringConvertible & SendableMetatype {
    /// A value in quotes, which `parse` reads and `description` writes.
    package static func text(_ shape: String, _ parse: @escaping @Sendable (String) -> Value?) -> Self {
        Self(shape, parse: { $0.string.flatMap(parse) }, json: { .string($0.description) })
    }
}

extension ValueFormat where Value: RawRepresentable<String> & CaseIterable & SendableMetatype {
    /// One of the cases.
    package static var choice: Self {
        let shape = Value.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: " or ")
        return Self(shape, parse: { $0.string.flatMap(Value.init) }, json: { .string($0.rawValue) })
    }
}

extension ValueFormat<Bool> {
    package static var flag: Self { Self("true or false", parse: \.bool, json: { .bool($0) }) }
}

extension ValueFormat<String> {
    package static var text: Self { text("a text in quotes") { $0 } }

    /// A text that `isValid` accepts.
    package static func text(_ shape: String, where isValid: @escaping @Sendable (String) -> Bool) -> Self {
        text(shape) { isValid($0) ? $0 : nil }
    }

    package static var path: Self { path("an absolute path in quotes", limit: .max) }

    /// An absolute path of at most `limit` bytes.
    package static func path(_ shape: String, limit: Int) -> Self {
        text(shape, where: { $0.hasPrefix("/") && !$0.utf8.contains(0) && $0.utf8.count <= limit })
    }
}

extension ValueFormat<Int> {
    package static func number(in range: ClosedRange<Int>) -> Self {
        Self(
            "a whole number from \(range.lowerBound) to \(range.upperBound)",
            parse: { $0.int.flatMap { range.contains($0) ? $0 : nil } },
            json: { .number(JSONNumber($0)) }
        )
    }
}

extension ValueFormat<UInt16> {
    package static var port: Self {
        Self(
            "a number from 1 to 65535",
            parse: { $0.int.flatMap(UInt16.init(exactly:)).flatMap { $0 > 0 ? $0 : nil } },
            json: { .number(JSONNumber(Int($0))) }
        )
    }
}

extension ValueFormat<DurationText> {
    /// A time of a range of seconds.
    package static func duration(in range: ClosedRange<Int>) -> Self {
        let (least, most) = (DurationText(seconds: range.lowerBound), DurationText(seconds: range.upperBound))
        return text("a time in quotes such as \"90s\" or \"10m\", from \(least) to \(most)") { text in
            DurationText(text).flatMap { range.contains($0.seconds) ? $0 : nil }
        }
    }
}

extension ValueFormat<ByteCountText> {
    /// A size of a range of bytes.
    package static func size(in range: ClosedRange<Int>) -> Self {
        let (least, most) = (ByteCountText(bytes: range.lowerBound), ByteCountText(bytes: range.upperBound))
        return text("a size in quotes such as \"500MB\" or \"2GB\", from \(least) to \(most)") { text in
            ByteCountText(text).flatMap { range.contains($0.bytes) ? $0 : nil }
        }
    }
}
