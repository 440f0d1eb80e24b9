/// Finds existing names that resemble a mistyped or guessed name.
package enum SimilarNameFinder {
    /// The number of characters that are compared. The rest of longer names is ignored.
    private static let limit = 64

    /// Returns the most similar names, ignoring case and punctuation.
    ///
    /// - Parameters:
    ///   - word: The name that was not found.
    ///   - names: The existing names.
    ///   - count: The maximum number of results.
    /// - Returns: The nearest names in this order: equal, mistyped, contained, with common words.
    package static func of(_ word: String, among names: some Sequence<String>, count: Int = 3) -> [String] {
        let wanted = Shape(word)
        guard !wanted.letters.isEmpty else { return [] }
        let rated = names.compactMap { name in
            wanted.distance(to: Shape(name)).map { (rank: $0, length: abs(name.count - word.count), name: name) }
        }
        return rated.sorted { ($0.rank, $0.length, $0.name) < ($1.rank, $1.length, $1.name) }.prefix(count)
            .map(\.name)
    }

    /// Returns the end of an error message: `; did you mean "title"?`, or all existing names if none is similar.
    ///
    /// - Parameters:
    ///   - word: The name that was not found.
    ///   - names: The existing names.
    ///   - kind: The plural of what the names stand for, such as `keys`.
    /// - Returns: The end of the message, with its semicolon.
    package static func suggestion(for word: String, among names: [String], listedAs kind: String) -> String {
        if let near = of(word, among: names, count: 1).first { return "; did you mean \"\(near)\"?" }
        return names.isEmpty ? "; there are no \(kind)" : "; the \(kind) are \(names.joined(separator: ", "))"
    }

    /// Returns the number of insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
    package static func distance(_ one: String, _ other: String) -> Int {
        distance(Array(one.lowercased()), Array(other.lowercased()))
    }

    private static func distance(_ a: [Character], _ b: [Character]) -> Int {
        var table = (0...a.count).map { row in (0...b.count).map { row == 0 ? $0 : ($0 == 0 ? row : 0) } }
        for i in a.indices {
            for j in b.indices {
                let replaced = table[i][j] + (a[i] == b[j] ? 0 : 1)
                var best = min(table[i][j + 1] + 1, table[i + 1][j] + 1, replaced)
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, table[i - 1][j - 1] + 1) }
                table[i + 1][j + 1] = best
            }
        }
        return table[a.count][b.count]
    }

    /// A name without case and punctuation, and its words: `takeScreenshot` has two.
    private struct Shape {
        let letters: [Character]
        let words: Set<String>

        init(_ name: String) {
            var words: [String] = [""]
            var isInLowercase = false
            for character in name.prefix(SimilarNameFinder.limit) {
                guard character.isLetter || character.isNumber else {
                    words.append("")
                    continue
                }
                if character.isUppercase, isInLowercase { words.append("") }
                isInLowercase = character.isLowercase
                words[words.count - 1] += character.lowercased()
            }
            letters = Array(words.joined())
            // Words of one or two letters occur in unrelated names.
            self.words = Set(words.filter { $0.count > 2 })
        }

        /// Returns nil if the names have nothing in common.
        func distance(to other: Shape) -> Int? {
            let (short, long) = (min(letters.count, other.letters.count), max(letters.count, other.letters.count))
            let slips = max(1, long / 4)
            if long - short <= slips {
                let distance = SimilarNameFinder.distance(letters, other.letters)
                if distance <= slips, distance < short { return distance }
            }
            if short > 2, isWithin(other) || other.isWithin(self) { return SimilarNameFinder.limit }
            let common = words.intersection(other.words).count
            return common > 0 ? 2 * SimilarNameFinder.limit - common : nil
        }

        private func isWithin(_ other: Shape) -> Bool { String(other.letters).contains(String(letters)) }
    }
}
