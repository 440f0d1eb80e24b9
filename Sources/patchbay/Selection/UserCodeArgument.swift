/// Whether a word is a request's code, such as `WDJB-MJHT`, or names an endpoint.
enum UserCodeArgument {
    private static let letters = Set("BCDFGHJKLMNPQRSTVWXZ")

    /// The code in its one spelling; nil when the word has not the shape of one (RFC 8628, section 6.1).
    static func code(_ word: String) -> String? {
        let typed = word.uppercased().filter { $0 != "-" && $0 != " " }
        guard typed.count == 8, typed.allSatisfy(letters.contains) else { return nil }
        return "\(typed.prefix(4))-\(typed.suffix(4))"
    }
}
