/// The format of tokens: `pbi_<id>_<secret>_<checksum>` for an invite, `pbg_…` for a grant, `pbr_…` for its renewal.
///
/// The ID has 8 letters and is public. The secret has 22 letters (131 bits) or 43 letters (256 bits). The checksum is
/// the CRC-32 of everything before the last `_`, in 6 letters.
///
/// Secret scanners find all kinds with `\bpb[igr]_[0-9A-Za-z]{8}_[0-9A-Za-z]{22,43}_[0-9A-Za-z]{6}\b` and confirm them
/// with the checksum.
package enum TokenFormat {
    package enum Kind: String, Sendable, CaseIterable {
        case invite = "pbi"
        case grant = "pbg"
        /// Renews the token of a grant with the same ID, once (RFC 6749, section 1.5).
        case refresh = "pbr"

        package var secretLength: Int { self == .invite ? 22 : 43 }
        /// The length of the whole token in bytes, all ASCII.
        package var length: Int { 3 + 1 + TokenFormat.idLength + 1 + secretLength + 1 + TokenFormat.checksumLength }
    }

    package static let idLength = 8
    private static let checksumLength = 6

    /// Splits a token into its parts. Spaces, other case and surrounding text are rejected.
    ///
    /// - Returns: Nil for any other text. The result does not show whether the token was issued.
    package static func parts(of text: some StringProtocol) -> (kind: Kind, id: String, secret: String)? {
        // The input can have any size, so at most the length of the longest token is read.
        let bytes = Array(text.utf8.prefix(Kind.grant.length + 1))
        guard let kind = Kind.allCases.first(where: { bytes.starts(with: $0.rawValue.utf8) }),
            bytes.count == kind.length
        else { return nil }
        let parts = bytes.split(separator: UInt8(ascii: "_"), omittingEmptySubsequences: false)
        guard parts.map(\.count) == [3, idLength, kind.secretLength, checksumLength],
            parts.joined().allSatisfy(Base62.contains),
            parts[3].elementsEqual(checksum(of: bytes.dropLast(checksumLength + 1)).utf8)
        else { return nil }
        return (kind, String(decoding: parts[1], as: UTF8.self), String(decoding: parts[2], as: UTF8.self))
    }

    /// Returns the whole token including its secret.
    package static func text(_ kind: Kind, id: String, secret: String) -> String {
        let text = "\(kind.rawValue)_\(id)_\(secret)"
        return "\(text)_\(checksum(of: text.utf8))"
    }

    private static func checksum(of bytes: some Sequence<UInt8>) -> String {
        Base62.text(of: CRC32.checksum(of: bytes), count: checksumLength)
    }
}

/// The 62 letters of tokens. Shells, URLs and double clicks treat them as one word.
package enum Base62 {
    package static let letters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)

    /// Returns the letter for a random byte, or nil if another byte must be drawn.
    ///
    /// 256 is not a multiple of 62. Only the remainders of bytes below 248 (4 × 62) are distributed evenly.
    package static func letter(for byte: UInt8) -> UInt8? { byte < 248 ? letters[Int(byte % 62)] : nil }

    package static func random(count: Int, from source: inout some RandomNumberGenerator) -> String {
        var text: [UInt8] = []
        while text.count < count {
            var word = source.next()
            for _ in 0..<8 where text.count < count {
                if let letter = letter(for: UInt8(truncatingIfNeeded: word)) { text.append(letter) }
                word >>= 8
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns letters with at least 128 random bits.
    package static func random128Bits() -> String {
        var source = SystemRandomNumberGenerator()
        return random(count: 22, from: &source)
    }

    /// Returns a number as exactly `count` letters, most significant first.
    package static func text(of number: UInt32, count: Int) -> String {
        var rest = Int(number)
        var text: [UInt8] = []
        for _ in 0..<count {
            text.append(letters[rest % 62])
            rest /= 62
        }
        return String(decoding: text.reversed(), as: UTF8.self)
    }

    package static func contains(_ byte: UInt8) -> Bool { byte.isLetterOrDigit }
}

/// The checksum of tokens: CRC-32 as in zlib and Ethernet (polynomial 0xEDB88320, reflected).
///
/// The checksum detects every single wrong letter. A typing error is therefore distinguished from an unknown token
/// without a request.
package enum CRC32 {
    private static let table: [UInt32] = (0..<256).map { byte in
        (0..<8).reduce(UInt32(byte)) { value, _ in value & 1 == 1 ? (value >> 1) ^ 0xEDB8_8320 : value >> 1 }
    }

    package static func checksum(of bytes: some Sequence<UInt8>) -> UInt32 {
        ~bytes.reduce(0xFFFF_FFFF) { ($0 >> 8) ^ table[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] }
    }
}
