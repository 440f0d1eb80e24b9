import Crypto
import FoundationEssentials

/// The hash of a token, for a store of another module. The token cannot be found from it.
package struct TokenDigest: Hashable, Sendable, Codable {
    private let bytes: Data

    package init(_ token: Token) { bytes = Data(token.digest) }

    /// Returns whether the hash is that of the token, in constant time.
    package func matches(_ token: Token) -> Bool { token.digest == bytes }
}
