/// How tokens are written: `pbi_<id>_<secret>_<checksum>` for an invite, `pbg_…` for a grant.
///
/// An id of 8 letters, which anybody may know; a secret of 22 letters (131 bits) or 43 (256 bits); 6 letters of CRC-32 over
/// everything before the last `_`. Secret scanners find both with
/// `\bpb[ig]_[0-9A-Za-z]{8}_[0-9A-Za-z]{22,43}_[0-9A-Za-z]{6}\b`, and know a real one by its checksum.
package enum TokenFormat {
    package enum Kind: String, Sendable, CaseIterable {
        case invite = "pbi"
        case grant = "pbg"

        package var secretLength: Int { self == .invite ? 22 : 43 }
        /// The whole token's, in bytes, all of them ASCII.
        package var length: Int { 3 + 1 + TokenFormat.idLength + 1 + secretLength + 1 + TokenFormat.checksumLength }
    }

    package static let idLength = 8
    private static let checksumLength = 6

    /// The parts of a token that is exactly as it was printed: no blanks, no other case, nothing before or behind.
    ///
    /// - Returns: Nil for anything else; whether somebody issued it is not known here.
    package static func parts(of text: some StringProtocol) -> (kind: Kind, id: String, secret: String)? {
        // Read no further than the longest token: the text may be of any size.
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

    /// The whole token, with its secret.
    package static func text(_ kind: Kind, id: String, secret: String) -> String {
        let text = "\(kind.rawValue)_\(id)_\(secret)"
        return "\(text)_\(checksum(of: text.utf8))"
    }

    private static func checksum(of bytes: some Sequence<UInt8>) -> String {
        Base62.text(of: CRC32.checksum(of: bytes), count: checksumLength)
    }
}
