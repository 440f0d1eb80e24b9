/// Writes an XML property list with one dictionary. The encoder of Foundation takes longer than a connect to usbmuxd.
///
/// - Parameter keys: The keys and values of the dictionary as XML.
/// - Returns: The bytes of the document.
func propertyListDocument(keys: String) -> [UInt8] {
    let document = """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0">
        <dict>
        \(keys)
        </dict>
        </plist>

        """
    return Array(document.utf8)
}

/// Validates an XML property list before parsing.
///
/// The parser is recursive and would overflow its stack on a deeply nested list. The validator scans the tags in one
/// pass. Accepted are the elements of plist(5), comments, processing instructions, and a document type without
/// declarations. Rejected are constructs that two parsers could nest differently: attributes in elements, CDATA sections,
/// and entities declared in the document.
package enum PropertyListValidator {
    /// The maximum nesting depth. A device list needs 5: plist, dict, array, dict, dict.
    static let depthLimit = 32

    private static let containers: Set<String> = ["plist", "dict", "array"]
    private static let leaves: Set<String> = ["key", "string", "integer", "real", "true", "false", "data", "date"]

    /// - Throws: `UsbmuxError.malformedMessage` with the problem.
    package static func validate(_ bytes: [UInt8]) throws(UsbmuxError) {
        if bytes.starts(with: "bplist".utf8) { throw .malformedMessage("a binary property list") }
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
                    throw .malformedMessage("an unclosed tag")
                }
                let tag = rest[(open + 1)..<close]
                rest = rest[(close + 1)...]
                depth += try step(of: tag)
                elements += 1
                guard (0...depthLimit).contains(depth) else {
                    throw .malformedMessage("a property list nested too deeply")
                }
            }
        }
        guard elements > 0 else { throw .malformedMessage("\(bytes.count) bytes that are not a property list") }
        guard depth == 0 else { throw .malformedMessage("a truncated property list") }
    }

    /// The change of nesting depth caused by this tag.
    private static func step(of tag: ArraySlice<UInt8>) throws(UsbmuxError) -> Int {
        if tag.starts(with: "!DOCTYPE ".utf8), !tag.contains(UInt8(ascii: "[")) { return 0 }
        let isEnd = tag.first == UInt8(ascii: "/")
        let isEmpty = tag.last == UInt8(ascii: "/")
        let inner = tag.dropFirst(isEnd ? 1 : 0).dropLast(isEmpty ? 1 : 0)
        let name = String(decoding: inner.prefix { !isSpace($0) }, as: UTF8.self)
        let hasMore = inner.dropFirst(name.utf8.count).contains { !isSpace($0) }
        guard !(isEnd && isEmpty), containers.contains(name) || leaves.contains(name), !hasMore || name == "plist"
        else {
            throw .malformedMessage("a tag that does not belong to a property list")
        }
        return isEmpty ? 0 : isEnd ? -1 : 1
    }

    private static func skip(
        _ rest: inout ArraySlice<UInt8>,
        through end: String,
        of what: String
    ) throws(UsbmuxError) {
        // The opening mark must not overlap the closing mark: "<!-->" is not a comment.
        guard let mark = rest.dropFirst(4).firstRange(of: end.utf8) else {
            throw .malformedMessage("\(what) without an end")
        }
        rest = rest[mark.upperBound...]
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }
}
