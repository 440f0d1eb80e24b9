import Crypto
import FoundationEssentials
import Model
import Testing

@testable import AccessControl

/// A store with one client of OAuth, which goes through the steps of an authorization.
struct OAuthFixture {
    static let issuer = "http://127.0.0.1:7282"
    static let verifier = String(repeating: "v", count: 43)
    static let callback = "http://127.0.0.1/callback"

    let store: AccessStore
    let client: OAuthClient
    var source = Fixture.loopback

    init(_ store: AccessStore) throws {
        self.store = store
        client = try store.oauth.register(name: "Inspector", redirectURIs: [Self.callback])
    }

    /// The query of a valid authorization request.
    var query: [String: String] {
        let challenge = Data(SHA256.hash(data: Data(Self.verifier.utf8))).base64URL
        return [
            "response_type": "code", "client_id": client.id, "redirect_uri": "http://127.0.0.1:4000/callback",
            "code_challenge": challenge, "code_challenge_method": "S256", "resource": "\(Self.issuer)/mcp",
            "state": "the state",
        ]
    }

    func begin(_ changes: [String: String?] = [:], user: UInt32? = 1_001) async throws -> (
        AccessRequest, secret: String
    ) {
        var query = query
        for (name, value) in changes { query[name] = value }
        return try await store.oauth.begin(query, issuer: Self.issuer, from: source, user: user)
    }

    /// Returns the parameters of the answer to an approved request.
    func approved(_ changes: [String: String?] = [:]) async throws -> [String: String] {
        let (request, secret) = try await begin(changes)
        _ = try await store.requests.approve(request.userCode)
        return try await answer(secret)
    }

    func answer(_ secret: String) async throws -> [String: String] {
        guard case .answered(let location) = try await store.oauth.answer(for: secret) else { return [:] }
        let query = location.split(separator: "?", maxSplits: 1)
        #expect(query[0] == "http://127.0.0.1:4000/callback")
        return try FormEncoding.parameters(of: query[1])
    }

    func exchange(_ code: String, _ changes: [String: String?] = [:]) async throws -> OAuthTokens {
        var form: [String: String] = [
            "grant_type": "authorization_code", "code": code, "client_id": client.id,
            "redirect_uri": "http://127.0.0.1:4000/callback", "code_verifier": Self.verifier,
            "resource": "\(Self.issuer)/mcp",
        ]
        for (name, value) in changes { form[name] = value }
        return try await store.oauth.tokens(for: form, from: source)
    }

    func refresh(_ token: Token, _ changes: [String: String?] = [:]) async throws -> OAuthTokens {
        var form: [String: String] = [
            "grant_type": "refresh_token", "refresh_token": token.reveal(), "client_id": client.id,
        ]
        for (name, value) in changes { form[name] = value }
        return try await store.oauth.tokens(for: form, from: source)
    }

    func isValid(_ token: Token) async -> Bool {
        (try? await store.grants.authenticate(token, from: source)) != nil
    }
}

/// Returns the code of the error that a step throws.
func oauthError(_ step: () async throws -> some Sendable) async -> OAuthError.Code? {
    do { _ = try await step() } catch { return (error as? OAuthError)?.code }
    return nil
}
