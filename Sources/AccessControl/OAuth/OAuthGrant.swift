import Crypto
import FoundationEssentials
package import Model

/// The part of a grant of OAuth besides its token: the MCP server, the client, and the token that renews it.
///
/// The grant is the family of its refresh tokens. The first 22 letters of their secrets (131 bits) are the same in the
/// whole family. The other 21 (125 bits) are new each time. So an old one is told from a guess, without a list.
struct OAuthGrant: Hashable, Sendable, Codable {
    /// Lifetime of an access token in seconds.
    static let tokenLifetime = 3_600
    /// Lifetime of the grant in seconds (30 days), and its idle timeout (3 days), which outlasts a weekend.
    static let lifetime = InviteSpec.grantLifetimes.upperBound
    static let idle = 259_200
    private static let familyLength = 22

    /// The URL of the MCP server at which the token is valid.
    let resource: String
    /// The digest of the client's ID.
    let client: Data
    /// The digest of what the refresh tokens have in common.
    let family: Data
    /// The digest of the refresh token that is valid.
    var refresh: Data
    var tokenExpiresAt: MonotonicTime

    /// - Parameters:
    ///   - request: The request that an owner has approved.
    ///   - refresh: The first refresh token.
    ///   - now: The time of the access token.
    init(_ request: AuthorizationRequest, refresh: Token, at now: MonotonicTime) {
        resource = request.resource.text
        client = request.client.digest
        family = Self.familyDigest(of: refresh)
        self.refresh = Data(refresh.digest)
        tokenExpiresAt = now + Self.tokenLifetime
    }

    /// Returns whether a refresh token is the valid one.
    func isCurrent(_ token: Token) -> Bool { token.kind == .refresh && token.digest == refresh }

    /// Returns whether a refresh token was given to a client of this grant at any time.
    func isOfFamily(_ token: Token) -> Bool {
        token.kind == .refresh && Self.family(of: token).map { SHA256.hash(data: $0) == family } ?? false
    }

    private static func familyDigest(of token: Token) -> Data {
        Data(SHA256.hash(data: family(of: token) ?? Data()))
    }

    private static func family(of token: Token) -> Data? {
        secret(of: token).map { Data("patchbay refresh v1\0\(token.id)\0\($0.prefix(familyLength))".utf8) }
    }

    private static func secret(of token: Token) -> String? { TokenFormat.parts(of: token.reveal())?.secret }

    /// Returns a refresh token of the same family.
    static func successor(of token: Token) -> Token {
        var source = SystemRandomNumberGenerator()
        let new = Base62.random(count: Token.Kind.refresh.secretLength - familyLength, from: &source)
        return Token(.refresh, id: token.id, secret: (secret(of: token) ?? "").prefix(familyLength) + new)
    }
}

/// The tokens of a client, as it gets them.
package struct OAuthTokens: Sendable {
    package let access: Token
    package let refresh: Token
    package let grant: Grant
    /// Lifetime of the access token in seconds.
    package let lifetime = OAuthGrant.tokenLifetime
}
