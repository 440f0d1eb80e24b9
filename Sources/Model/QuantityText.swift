/// A duration as people write it in the configuration and on the command line: `90s`, `10m`, `8h` or `30d`.
package struct DurationText: Hashable, Sendable, CustomStringConvertible {
    package let seconds: Int

    private static let units: [Unit] = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)]

    package init(seconds: Int) { self.seconds = seconds }

    /// Parses a whole number with one unit; nil for any other text, for a negative number, and beyond `Int.max`.
    package init?(_ text: String) {
        guard let seconds = quantity(in: text, with: Self.units) else { return nil }
        self.seconds = seconds
    }

    /// The shortest exact form, with the largest unit that divides the duration.
    package var description: String { shortest(seconds, with: Self.units) ?? "\(seconds)s" }
}

/// A number of bytes as people write it in the configuration: `64MB` or `2GB`, with powers of 1,000.
package struct ByteCountText: Hashable, Sendable, CustomStringConvertible {
    package let bytes: Int

    private static let units: [Unit] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)]

    package init(bytes: Int) { self.bytes = bytes }

    /// Parses a whole number with one unit; nil for any other text, and beyond `Int.max`.
    package init?(_ text: String) {
        guard let bytes = quantity(in: text, with: Self.units) else { return nil }
        self.bytes = bytes
    }

    /// The shortest exact form.
    package var description: String { shortest(bytes, with: Self.units) ?? "\(bytes)B" }
}

private typealias Unit = (name: String, factor: Int)

private func quantity(in text: String, with units: [Unit]) -> Int? {
    guard let unit = units.first(where: { text.hasSuffix($0.name) }) else { return nil }
    let digits = text.dropLast(unit.name.count)
    guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(digits) else { return nil }
    let (quantity, overflows) = number.multipliedReportingOverflow(by: unit.factor)
    return overflows ? nil : quantity
}

private func shortest(_ quantity: Int, with units: [Unit]) -> String? {
    let unit = units.first { quantity % $0.factor == 0 && quantity > 0 }
    return unit.map { "\(quantity / $0.factor)\($0.name)" }
}
