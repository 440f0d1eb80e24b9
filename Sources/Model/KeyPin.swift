/// The identity of a key: the SHA-256 of its SubjectPublicKeyInfo (RFC 5280, section 4.1.2.7; RFC 7469, section 2.4).
///
/// The text is 52 letters of base32. A pin is public.
package struct KeyPin: Hashable, Sendable {
    /// The length of a SHA-256 in bytes.
    package static let byteCount = 32
    /// The length of the text.
    package static let textLength = 52

    package let bytes: [UInt8]

    /// - Returns: Nil unless there are exactly 32 bytes.
    package init?(digest bytes: some Sequence<UInt8>) {
        let bytes = Array(bytes)
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = bytes
    }

    /// Parses the text. Lower case, spaces and padding are rejected.
    package init?(_ text: some StringProtocol) {
        guard text.utf8.prefix(Self.textLength + 1).count == Self.textLength, let bytes = Base32.decode(text) else {
            return nil
        }
        self.init(digest: bytes)
    }
}

extension KeyPin: CustomStringConvertible {
    package var description: String { Base32.encode(bytes) }
}

extension KeyPin: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let pin = KeyPin(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "a key pin has \(Self.textLength) letters of base32 (A-Z and 2-7)"
            )
        }
        self = pin
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
