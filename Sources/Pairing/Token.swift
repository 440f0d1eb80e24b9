import Crypto
import FoundationEssentials

/// What is shown to get in: an invite, spent by its first redeemer, or a grant, what a redeemer holds afterwards.
///
/// Written `pbi_<id>_<secret>_<checksum>` or `pbg_…`: an id of 8 letters, which anybody may know; a secret of 22
/// letters (131 bits) or 43 (256 bits); 6 letters of CRC-32 over everything before the last `_`. Secret scanners find both
/// with `\bpb[ig]_[0-9A-Za-z]{8}_[0-9A-Za-z]{22,43}_[0-9A-Za-z]{6}\b`, and know a real one by its checksum.
///
/// Printing, interpolating, dumping and reflecting one shows its id and never its secret.
package struct Token: Sendable {
    package enum Kind: String, Sendable, CaseIterable {
        case invite = "pbi"
        case grant = "pbg"

        var secretLength: Int { self == .invite ? 22 : 43 }
        /// The whole token's, in bytes, all of them ASCII.
        package var length: Int { 3 + 1 + Token.idLength + 1 + secretLength + 1 + Token.checksumLength }
    }

    static let idLength = 8
    private static let checksumLength = 6

    package let kind: Kind
    package let id: String
    private let secret: String

    init(_ kind: Kind, id: String, secret: String) {
        self.kind = kind
        self.id = id
        self.secret = secret
    }

    /// A new one, from the system's random source (getrandom(2)).
    package init(random kind: Kind) {
        var source = SystemRandomNumberGenerator()
        self.init(
            kind,
            id: Base62.random(count: Self.idLength, from: &source),
            secret: Base62.random(count: kind.secretLength, from: &source)
        )
    }

    /// The same secret under another id: a grant keeps its id when its secret is replaced.
    func renamed(_ id: String) -> Token { Token(kind, id: id, secret: secret) }

    /// Reads a token, exactly as it was printed: no blanks, no other case, nothing before or behind.
    ///
    /// - Throws: `PairingError.notAToken`, which does not repeat what was given: it may be a secret with a typo.
    package init(_ text: some StringProtocol) throws(PairingError) {
        // Read no further than the longest token: the text may be of any size.
        let bytes = Array(text.utf8.prefix(Kind.grant.length + 1))
        guard let kind = Kind.allCases.first(where: { bytes.starts(with: $0.rawValue.utf8) }),
            bytes.count == kind.length
        else { throw .notAToken }
        let parts = bytes.split(separator: UInt8(ascii: "_"), omittingEmptySubsequences: false)
        guard parts.map(\.count) == [3, Self.idLength, kind.secretLength, Self.checksumLength],
            parts.joined().allSatisfy(Base62.contains)
        else { throw .notAToken }
        let checksum = CRC32.checksum(of: bytes.dropLast(Self.checksumLength + 1))
        guard parts[3].elementsEqual(Base62.text(of: checksum, count: Self.checksumLength).utf8) else {
            throw .notAToken
        }
        self.init(
            kind,
            id: String(decoding: parts[1], as: UTF8.self),
            secret: String(decoding: parts[2], as: UTF8.self)
        )
    }

    /// The whole token with its secret: only for its one reader.
    package func reveal() -> String {
        let text = "\(kind.rawValue)_\(id)_\(secret)"
        return "\(text)_\(Base62.text(of: CRC32.checksum(of: text.utf8), count: Self.checksumLength))"
    }

    /// What is kept instead of the token.
    ///
    /// The secrets hold 131 bits and more, so that one fast hash is the right one: nobody tries 2^130 of them.
    var digest: SHA256Digest {
        SHA256.hash(data: Data("patchbay \(kind.rawValue) v1\0\(id)\0\(secret)".utf8))
    }

    /// The secret as the salt of what is derived from it.
    var salt: Data { Data("\(kind.rawValue)\0\(id)\0\(secret)".utf8) }
}

extension Token: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "\(kind.rawValue)_\(id)_…" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: ["id": id]) }
}
