package import FoundationEssentials

/// Decodes base64 as programs write it, beside the standard form (RFC 4648, section 4).
///
/// Accepted are line breaks (RFC 2045), data URLs (RFC 2397), missing padding, and the URL-safe alphabet (RFC 4648,
/// section 5). Two readings of one text are impossible: each letter has one value, and only white space is skipped.
package enum Base64Decoder {
    /// The maximum length of the media type and the parameters in a data URL, in bytes.
    private static let headerLimit = 256

    /// Decodes a text.
    ///
    /// - Parameter text: The base64, or a data URL.
    /// - Returns: The bytes, and whether the text is standard base64; nil for any other text.
    package static func decode(_ text: String) -> (data: Data, isStandard: Bool)? {
        if let data = Data(base64Encoded: text), isComplete(text.utf8, data.count) { return (data, true) }
        return loose(Array(text.utf8)[...]).map { ($0, false) }
    }

    /// Returns whether padding is at the end only. Foundation accepts it elsewhere, and then decodes fewer bytes.
    private static func isComplete(_ text: String.UTF8View, _ size: Int) -> Bool {
        let padding = text.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        return text.count % 4 == 0 && size == text.count / 4 * 3 - padding
    }

    private static func loose(_ text: ArraySlice<UInt8>) -> Data? {
        let text = text.drop(while: isSpace)
        guard text.prefix(5).map({ $0 | 0x20 }).elementsEqual("data:".utf8) else { return standard(text) }
        guard let comma = text.prefix(headerLimit).firstIndex(of: UInt8(ascii: ",")) else { return nil }
        guard let body = percentDecoded(text[(comma + 1)...]) else { return nil }
        let header = String(decoding: text[..<comma], as: UTF8.self).lowercased()
        return header.hasSuffix(";base64") ? standard(body[...]) : Data(body)
    }

    /// Decodes the letters after they were brought into the standard form.
    private static func standard(_ text: ArraySlice<UInt8>) -> Data? {
        var letters: [UInt8] = []
        letters.reserveCapacity(text.count + 3)
        for byte in text where !isSpace(byte) {
            switch byte {
            case UInt8(ascii: "-"): letters.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): letters.append(UInt8(ascii: "/"))
            default: letters.append(byte)
            }
        }
        var padding = 0
        while padding < 2, letters.last == UInt8(ascii: "=") {
            letters.removeLast()
            padding += 1
        }
        guard !letters.contains(UInt8(ascii: "=")) else { return nil }
        letters += repeatElement(UInt8(ascii: "="), count: (4 - letters.count % 4) % 4)
        return Data(base64Encoded: Data(letters))
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

    /// Decodes the escapes of a URL (RFC 3986, section 2.1); nil for an incomplete one.
    private static func percentDecoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard text.contains(UInt8(ascii: "%")) else { return Array(text) }
        var (bytes, rest) = ([UInt8](), text)
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"): (byte & 7) + 9
        default: nil
        }
    }
}
