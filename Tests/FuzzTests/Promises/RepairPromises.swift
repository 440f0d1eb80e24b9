@testable import Model

/// Promises for the texts of servers: a repaired text has one reading, which every strict reader shares.
enum RepairPromises {
    private static let damage = [
        "NaN", "-Infinity", "undefined", "01", "+1", ",", "]", "}", "\"a\":1,\"a\":2", "\u{FEFF}", "\0", "\"\t\"",
        "\"\\x\"",
        "\"\\u12\"", "[[", "{\"a\":",
    ]

    static func check(_ input: [UInt8]) throws(Violation) {
        try read(input)
        var choices = Choices(input.reversed())
        var text = input
        for _ in 0..<1 + choices.number(below: 4) {
            text.insert(contentsOf: choices.one(of: damage).utf8, at: choices.number(below: text.count + 1))
        }
        try read(text)
    }

    private static func read(_ bytes: [UInt8]) throws(Violation) {
        let strict = try? JSON(parsing: bytes, maxDepth: JSON.maxResultDepth)
        let repaired: RepairedJSON
        do throws(JSONError) { repaired = try RepairedJSON(bytes) } catch {
            try promise("what a strict reader takes needs no repair", strict == nil)
            return try promise("the place of an error is in the text", (0...bytes.count).contains(error.offset))
        }
        let onlyMark = repaired.repairs.first.allSatisfy { $0.kind == .byteOrderMark }
        try promise("valid JSON is not changed", strict == nil || strict == repaired.json && onlyMark)
        try promise("invalid JSON is counted", strict != nil || !repaired.repairs.isEmpty)
        let written = repaired.json.bytes
        try promise(
            "what is passed on is JSON, and every strict reader reads the same",
            (try? JSON(parsing: written, maxDepth: JSON.maxResultDepth)) == repaired.json
        )
        try promise("a repair does not make the text much longer", written.count <= 8 * bytes.count + 8)
        let details = repaired.repairs.first
        try promise(
            "the details of the repairs are few",
            details.count == min(repaired.repairs.count, JSONRepairs.limit)
                && details.allSatisfy { $0.path.count <= JSON.maxResultDepth }
        )
    }
}
