import Crypto
import FoundationEssentials
import Model

/// Decides what a client gets that shows a refresh token. Changes nothing itself.
struct OAuthRenewal {
    enum Outcome {
        /// The change that replaces both tokens.
        case renewed(ChangeSet, access: Token, refresh: Token)
        /// The reason, for the audit log.
        case refused(String)
        /// An old token was shown, so one of two clients has stolen it. End the grant.
        case replayed
    }

    let state: AccessState
    /// The connection that the token came over.
    let source: RequestSource
    let now: MonotonicTime

    /// Replaces the tokens of a grant.
    ///
    /// - Parameters:
    ///   - token: The refresh token.
    ///   - client: The client's ID.
    ///   - resource: The URL of the MCP server, if the client names one.
    /// - Returns: The outcome, with the change to commit.
    func renew(_ token: Token, client: String, resource: String?) -> Outcome {
        guard var grant = state.grants[token.id], var oauth = grant.oauth, oauth.isOfFamily(token) else {
            return .refused("unknown refresh token")
        }
        if let end = grant.endReason(at: now) { return .refused("\(end.rawValue) grant") }
        guard oauth.isCurrent(token) else { return .replayed }
        guard SHA256.hash(data: Data(client.utf8)) == oauth.client else {
            return .refused("refresh token of another client")
        }
        guard resource.map({ $0 == oauth.resource }) ?? true else {
            return .refused("refresh token for another resource")
        }
        guard grant.isUsable(from: source) else { return .refused("bound to another listener") }
        var random = SystemRandomNumberGenerator()
        let letters = Base62.random(count: Token.Kind.grant.secretLength, from: &random)
        let access = Token(.grant, id: grant.id, secret: letters)
        let refresh = OAuthGrant.successor(of: token)
        oauth.refresh = Data(refresh.digest)
        oauth.tokenExpiresAt = now + OAuthGrant.tokenLifetime
        grant.digest = Data(access.digest)
        grant.oauth = oauth
        grant.lastUsedAt = now
        var change = ChangeSet()
        change.grants = [grant]
        return .renewed(change, access: access, refresh: refresh)
    }
}
