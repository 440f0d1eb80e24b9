/// The classes of ASCII bytes that names and texts of protocols consist of.
extension UInt8 {
    package var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }

    package var isLetterOrDigit: Bool {
        isDigit || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20)
    }

    /// Indicates whether the byte may be in a token (RFC 9110, section 5.6.2).
    package var isTokenByte: Bool { isLetterOrDigit || "!#$%&'*+-.^_`|~".utf8.contains(self) }

    /// Indicates whether a URL contains the byte as it is (unreserved, RFC 3986, section 2.3).
    package var isUnreserved: Bool { isLetterOrDigit || "-._~".utf8.contains(self) }
}

extension String {
    /// The text as one segment or value of a URL, with all other bytes escaped (RFC 3986, section 2.1).
    package var urlEscaped: String {
        utf8.reduce(into: "") { escaped, byte in
            if byte.isUnreserved {
                escaped.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                escaped += digits.count == 1 ? "%0\(digits)" : "%\(digits)"
            }
        }
    }
}
