/// What a person types to approve a request: eight of twenty consonants, shown `WDJB-MJHT` (RFC 8628, section 6.1).
///
/// 34.6 bits, which is little: it lives five minutes, in memory only, and wrong ones are counted.
enum UserCode {
    static let letters = Array("BCDFGHJKLMNPQRSTVWXZ")
    static let length = 8

    static func random() -> String {
        shown((0..<length).map { _ in letters[Int.random(in: letters.indices)] })
    }

    /// The code in its one spelling: case, hyphens and blanks do not matter; nil when a letter is none of the twenty.
    static func normal(_ typed: some StringProtocol) -> String? {
        // No code is longer than this with all the hyphens that people put in.
        guard typed.utf8.prefix(33).count <= 32 else { return nil }
        let typed = typed.uppercased().filter { $0 != "-" && $0 != " " }
        guard typed.count == length, typed.allSatisfy(letters.contains) else { return nil }
        return shown(Array(typed))
    }

    private static func shown(_ letters: [Character]) -> String { String(letters[..<4]) + "-" + String(letters[4...]) }
}
