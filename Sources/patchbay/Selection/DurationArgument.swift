import ArgumentParser

/// A span of time as people write it: `90`, `90s`, `10m`, `8h`, `30d`.
struct DurationArgument: ExpressibleByArgument, Equatable {
    let count: Int

    private static let units: [Character: Int] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]

    init?(argument: String) {
        guard let last = argument.last else { return nil }
        let unit = Self.units[last]
        let digits = unit == nil ? argument[...] : argument.dropLast()
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(digits), number > 0 else {
            return nil
        }
        let (count, overflows) = number.multipliedReportingOverflow(by: unit ?? 1)
        guard !overflows else { return nil }
        self.count = count
    }
}
