import Crypto
import FoundationEssentials
package import Model

/// An access token: an invite, which its first redeemer spends, or a grant, which a redeemer holds afterwards.
///
/// `TokenFormat` defines the text form. Printing, interpolating, dumping and reflecting show the ID and never the
/// secret.
package struct Token: Sendable {
    package typealias Kind = TokenFormat.Kind

    package let kind: Kind
    package let id: String
    private let secret: String

    init(_ kind: Kind, id: String, secret: String) {
        self.kind = kind
        self.id = id
        self.secret = secret
    }

    /// Creates a random token (getrandom(2)).
    package init(random kind: Kind) {
        var source = SystemRandomNumberGenerator()
        self.init(
            kind,
            id: Base62.random(count: TokenFormat.idLength, from: &source),
            secret: Base62.random(count: kind.secretLength, from: &source)
        )
    }

    /// Parses a token.
    ///
    /// - Throws: `AccessError.notAToken`, which does not repeat the input, because the input may be a secret with a
    ///   typo.
    package init(_ text: some StringProtocol) throws(AccessError) {
        guard let (kind, id, secret) = TokenFormat.parts(of: text) else { throw .notAToken }
        self.init(kind, id: id, secret: secret)
    }

    /// Returns the whole token with its secret. Only its holder may see the result.
    package func reveal() -> String { TokenFormat.text(kind, id: id, secret: secret) }

    /// The hash that is stored instead of the token.
    ///
    /// One fast hash is enough, because the secrets have at least 131 bits: trying 2^130 of them is infeasible.
    var digest: SHA256Digest {
        SHA256.hash(data: Data("patchbay \(kind.rawValue) v1\0\(id)\0\(secret)".utf8))
    }

    /// The secret, used as the salt of a key derivation.
    var salt: Data { Data("\(kind.rawValue)\0\(id)\0\(secret)".utf8) }
}

extension Token: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "\(kind.rawValue)_\(id)_…" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: ["id": id]) }
}
