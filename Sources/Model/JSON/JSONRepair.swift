/// One damaged part of a JSON text that was read nevertheless.
package struct JSONRepair: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// A byte order mark before the text was skipped.
        case byteOrderMark
        /// An object has a name twice. The last value counts, at the place of the first.
        case duplicateName
        /// A trailing comma, a control character or an unknown escape in a string, or zero bytes after the text. Nothing
        /// is lost.
        case syntax
        /// Bytes of a string that are not UTF-8 became U+FFFD.
        case invalidUTF8
        /// A word that is not JSON became null: `NaN`, `Infinity`, `undefined`, `01`. Has the word, or its length if that is over 32 bytes.
        case notJSON(String)
        /// An array or object below the maximum depth became null.
        case tooDeep
    }

    package let kind: Kind
    /// The members and elements that lead to the part, the outermost first.
    package fileprivate(set) var path: [String] = []
}

extension JSONRepair.Kind {
    /// Describes what is lost. Nil if nothing is, or if the last of two values counts as in other programs.
    fileprivate var loss: String? {
        switch self {
        case .byteOrderMark, .duplicateName, .syntax: nil
        case .invalidUTF8: "has bytes that are not UTF-8"
        case .notJSON(let word): "was \(word), which is not JSON, and is null"
        case .tooDeep: "was nested more than \(JSON.maxResultDepth) levels deep and is null"
        }
    }
}

/// The repairs of one text.
package struct JSONRepairs: Hashable, Sendable {
    /// The repairs with details. Further ones are only counted, which bounds the memory.
    package static let limit = 16

    /// The losses that are named. The others are counted.
    private static let namedLimit = 3

    package private(set) var first: [JSONRepair] = []
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }

    /// Names what is lost. The text contains names and words of the JSON text: print it only as sanitised text.
    ///
    /// - Parameter redact: Removes secrets from a name or a word. A path has them with escapes (RFC 6901, section 3).
    /// - Returns: Nil if nothing is lost.
    package func losses(_ redact: (String) -> String = { $0 }) -> String? {
        let lost = first.filter { $0.kind.loss != nil }
        guard !lost.isEmpty else { return nil }
        // A path may be long, so only those that are named are written.
        let named = lost.prefix(Self.namedLimit).map { repair in
            "\(JSONPointer.root.appending(contentsOf: repair.path.map(redact))) \(redact(repair.kind.loss ?? ""))"
        }
        let more = lost.count - named.count + count - first.count
        return named.joined(separator: "; ") + (more > 0 ? "; and \(more) more" : "")
    }

    mutating func record(_ kind: JSONRepair.Kind) {
        if count < Self.limit { first.append(JSONRepair(kind: kind)) }
        count += 1
    }

    /// Adds an outer name to the paths of the repairs from an index on.
    mutating func prepend(_ name: String, from index: Int) {
        for index in min(index, first.count)..<first.count { first[index].path.insert(name, at: 0) }
    }
}

/// A JSON text from a server, and what was repaired in it.
package struct RepairedJSON: Sendable {
    package let json: JSON
    package let repairs: JSONRepairs

    /// Parses the text of a server, with repairs.
    ///
    /// - Throws: `JSONError` if the structure is damaged, such as for a text that is cut off or that follows another.
    package init(_ bytes: some Sequence<UInt8>) throws(JSONError) {
        let parsed = bytes.withContiguousStorageIfAvailable { Self.parse($0) }
        (json, repairs) = try (parsed ?? Array(bytes).withUnsafeBufferPointer { Self.parse($0) }).get()
    }

    private static func parse(_ bytes: UnsafeBufferPointer<UInt8>) -> Result<(JSON, JSONRepairs), JSONError> {
        var parser = JSONParser(bytes, maxDepth: JSON.maxResultDepth, isRepairing: true)
        do throws(JSONError) {
            let json = try parser.parse()
            return .success((json, parser.repairs))
        } catch { return .failure(error) }
    }
}
