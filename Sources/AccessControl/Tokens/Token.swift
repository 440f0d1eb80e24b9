import Crypto
import FoundationEssentials
package import Model

/// What is shown to get in: an invite, spent by its first redeemer, or a grant, what a redeemer holds afterwards.
///
/// `TokenFormat` has how it is written. Printing, interpolating, dumping and reflecting one shows its id and never its secret.
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

    /// A new one, from the system's random source (getrandom(2)).
    package init(random kind: Kind) {
        var source = SystemRandomNumberGenerator()
        self.init(
            kind,
            id: Base62.random(count: TokenFormat.idLength, from: &source),
            secret: Base62.random(count: kind.secretLength, from: &source)
        )
    }

    /// The same secret under another id: a grant keeps its id when its secret is replaced.
    func renamed(_ id: String) -> Token { Token(kind, id: id, secret: secret) }

    /// Reads a token, exactly as it was printed.
    ///
    /// - Throws: `AccessError.notAToken`, which does not repeat what was given: it may be a secret with a typo.
    package init(_ text: some StringProtocol) throws(AccessError) {
        guard let (kind, id, secret) = TokenFormat.parts(of: text) else { throw .notAToken }
        self.init(kind, id: id, secret: secret)
    }

    /// The whole token with its secret: only for its one reader.
    package func reveal() -> String { TokenFormat.text(kind, id: id, secret: secret) }

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
