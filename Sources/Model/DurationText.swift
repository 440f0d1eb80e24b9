/// A duration as people write it in the configuration and on the command line: `90s`, `10m`, `8h` or `30d`.
package struct DurationText: Hashable, Sendable, CustomStringConvertible {
    package let seconds: Int

    private static let units: [(name: Character, seconds: Int)] = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)]

    package init(seconds: Int) { self.seconds = seconds }

    /// Parses a whole number with one unit; nil for any other text, for a negative number, and beyond `Int.max`.
    package init?(_ text: String) {
        guard let unit = Self.units.first(where: { $0.name == text.last }) else { return nil }
        let digits = text.dropLast()
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(digits) else { return nil }
        let (seconds, overflows) = number.multipliedReportingOverflow(by: unit.seconds)
        guard !overflows else { return nil }
        self.seconds = seconds
    }

    /// The shortest exact form, with the largest unit that divides the duration.
    package var description: String {
        let unit = Self.units.first { seconds % $0.seconds == 0 && seconds > 0 } ?? Self.units[3]
        return "\(seconds / unit.seconds)\(unit.name)"
    }
}
