/// Judges an XML property list before a parser sees it.
///
/// The parser descends by recursion and would run out of stack on a list nested deep enough. This looks at tags only, in
/// one pass, and lets through what property lists are made of: the elements of plist(5), comments, processing
/// instructions, a document type without declarations of its own. Whatever could make two readers count differently
/// (attributes in elements, character data sections, entities of the document's own) is refused.
package enum PropertyListValidator {
    /// A device list needs 5: plist, dict, array, dict, dict.
    static let depthLimit = 32

    private static let containers: Set<String> = ["plist", "dict", "array"]
    private static let leaves: Set<String> = ["key", "string", "integer", "real", "true", "false", "data", "date"]

    /// - Throws: `UsbmuxError.garbled` saying what is wrong.
    package static func check(_ bytes: [UInt8]) throws(UsbmuxError) {
        if bytes.starts(with: "bplist".utf8) { throw .garbled("a binary property list") }
        var rest = bytes[...]
        var depth = 0
        var elements = 0
        while let open = rest.firstIndex(of: UInt8(ascii: "<")) {
            rest = rest[open...]
            if rest.starts(with: "<!--".utf8) {
                try skip(&rest, through: "-->", of: "a comment")
            } else if rest.starts(with: "<?".utf8) {
                try skip(&rest, through: "?>", of: "a processing instruction")
            } else {
                guard let close = rest.firstIndex(of: UInt8(ascii: ">")) else {
                    throw .garbled("a tag without its end")
                }
                let tag = rest[(open + 1)..<close]
                rest = rest[(close + 1)...]
                depth += try step(of: tag)
                elements += 1
                guard (0...depthLimit).contains(depth) else { throw .garbled("a property list nested too deep") }
            }
        }
        guard elements > 0 else { throw .garbled("\(bytes.count) bytes that are no property list") }
        guard depth == 0 else { throw .garbled("a property list that is cut short") }
    }

    /// How much deeper the text is after this tag than before it.
    private static func step(of tag: ArraySlice<UInt8>) throws(UsbmuxError) -> Int {
        if tag.starts(with: "!DOCTYPE ".utf8), !tag.contains(UInt8(ascii: "[")) { return 0 }
        let isEnd = tag.first == UInt8(ascii: "/")
        let isEmpty = tag.last == UInt8(ascii: "/")
        let inner = tag.dropFirst(isEnd ? 1 : 0).dropLast(isEmpty ? 1 : 0)
        let name = String(decoding: inner.prefix { !isSpace($0) }, as: UTF8.self)
        let hasMore = inner.dropFirst(name.utf8.count).contains { !isSpace($0) }
        guard !(isEnd && isEmpty), containers.contains(name) || leaves.contains(name), !hasMore || name == "plist"
        else {
            throw .garbled("a tag that is not of a property list")
        }
        return isEmpty ? 0 : isEnd ? -1 : 1
    }

    private static func skip(
        _ rest: inout ArraySlice<UInt8>,
        through end: StaticString,
        of what: String
    ) throws(UsbmuxError) {
        let count = end.utf8CodeUnitCount
        let mark = UnsafeBufferPointer(start: end.utf8Start, count: count)
        // The two marks that open these may not close them: "<!-->" is no comment.
        var index = rest.startIndex + 4
        while index + count <= rest.endIndex {
            if rest[index..<(index + count)].elementsEqual(mark) {
                rest = rest[(index + count)...]
                return
            }
            index += 1
        }
        throw .garbled("\(what) without its end")
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }
}
