import Model

/// The words of a TXT record on a command line: `key=value`, `key=` for an empty value, `key` for an attribute.
enum TXTArgument {
    /// - Throws: `CLIError` when the words do not make a record that can be published.
    static func record(_ words: [String]) throws(CLIError) -> TXTRecord {
        var record = TXTRecord()
        for word in words {
            let split = word.firstIndex(of: "=")
            let key = String(word[..<(split ?? word.endIndex)])
            if record.contains(key) {
                throw .usage("the TXT key \"\(SanitizedText(key))\" is given twice", try: "leave one of them out")
            }
            record.set(key, to: split.map { Array(word[word.index(after: $0)...].utf8) })
        }
        if let problem = record.problem {
            throw .usage(problem, try: "patchbay advertise Shop _http._tcp 8080 path=/ version=2")
        }
        return record
    }
}
