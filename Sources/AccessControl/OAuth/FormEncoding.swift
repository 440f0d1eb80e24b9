import Model

/// The format application/x-www-form-urlencoded of queries and bodies (WHATWG URL, section 5).
package enum FormEncoding {
    /// Maximum number of parameters.
    static let limit = 32

    static func encode(_ text: String) -> String {
        var encoded = ""
        for byte in text.utf8 {
            if byte.isLetterOrDigit || "-._~".utf8.contains(byte) {
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                encoded += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return encoded
    }

    /// Parses parameters, each of which may occur once (RFC 6749, section 3.1). An empty value counts as absent.
    ///
    /// - Throws: `OAuthError` with `invalid_request`.
    package static func parameters(of text: some StringProtocol) throws(OAuthError) -> [String: String] {
        let pairs = text.split(separator: "&")
        guard pairs.count <= limit else { throw OAuthError(.invalidRequest, "the request has too many parameters") }
        var parameters: [String: String] = [:]
        for pair in pairs {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = decode(parts[0]), let value = decode(parts.count > 1 ? parts[1] : "") else {
                throw OAuthError(.invalidRequest, "the request has an invalid percent-encoding")
            }
            // Several resources in one request (RFC 8707) are not supported either: a token is for one MCP server.
            guard parameters.updateValue(value, forKey: name) == nil else {
                throw OAuthError(.invalidRequest, "the request has a parameter twice")
            }
        }
        return parameters.filter { !$0.value.isEmpty }
    }

    /// Returns the decoded text; nil for an incomplete encoding or bytes that are no UTF-8.
    private static func decode(_ text: some StringProtocol) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                let digits = rest.prefix(2)
                guard digits.count == 2, digits.allSatisfy(\.isHexadecimalDigit),
                    let code = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
                else { return nil }
                bytes.append(code)
                rest = rest.dropFirst(2)
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

extension UInt8 {
    fileprivate var isHexadecimalDigit: Bool {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }
}
