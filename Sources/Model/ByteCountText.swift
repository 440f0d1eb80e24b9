/// A number of bytes as people write it in the configuration: `64MB` or `2GB`, with powers of 1,000.
package struct ByteCountText: Hashable, Sendable, CustomStringConvertible {
    package let bytes: Int

    private static let units: [(name: String, bytes: Int)] = [
        ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000),
    ]

    package init(bytes: Int) { self.bytes = bytes }

    /// Parses a whole number with one unit; nil for any other text, and beyond `Int.max`.
    package init?(_ text: String) {
        guard let unit = Self.units.first(where: { text.hasSuffix($0.name) }) else { return nil }
        let digits = text.dropLast(2)
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(digits) else { return nil }
        let (bytes, overflows) = number.multipliedReportingOverflow(by: unit.bytes)
        guard !overflows else { return nil }
        self.bytes = bytes
    }

    /// The shortest exact form.
    package var description: String {
        let unit = Self.units.first { bytes % $0.bytes == 0 && bytes > 0 }
        return unit.map { "\(bytes / $0.bytes)\($0.name)" } ?? "\(bytes)B"
    }
}
