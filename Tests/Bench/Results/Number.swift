/// Number formats for tables.
extension Double {
    /// The number with three significant digits, or all digits of an integer.
    var shown: String {
        let size = magnitude
        if size >= 1_000 { return Int(rounded()).grouped }
        let digits = self == rounded() || size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3
        guard digits > 0 else { return String(Int(rounded())) }
        let scale = [1, 10, 100, 1_000][digits]
        let whole = Int((size * Double(scale)).rounded())
        let fraction = String(whole % scale)
        let zeros = String(repeating: "0", count: digits - fraction.count)
        return "\(self < 0 ? "-" : "")\(whole / scale).\(zeros)\(fraction)"
    }
}

extension Int {
    /// The number with digit groups, such as 12,000.
    var grouped: String {
        guard magnitude >= 1_000 else { return String(self) }
        let rest = String(magnitude % 1_000)
        return "\((self / 1_000).grouped),\(String(repeating: "0", count: 3 - rest.count))\(rest)"
    }
}
