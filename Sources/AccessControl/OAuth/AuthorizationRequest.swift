import Crypto
import FoundationEssentials
import Model

/// An authorization request (RFC 6749, section 4.1.1, with RFC 7636 and RFC 8707), complete and checked.
struct AuthorizationRequest: Hashable, Sendable {
    /// The scopes that a client may ask for.
    static let supportedScopes: Set<Scope> = [.registryRead, .endpointCall, .secretUse, .tunnelOpen]
    /// The scopes of a client that asks for none.
    static let defaultScopes: Set<Scope> = [.registryRead, .endpointCall, .secretUse]
    /// Maximum length of `state` in bytes.
    static let maxState = 2_048

    let client: OAuthClient
    let redirect: RedirectURI
    let state: String?
    /// The SHA-256 of the client's secret, in base64url (RFC 7636, section 4.2).
    let challenge: String
    let resource: OAuthResource
    let scopes: Set<Scope>

    /// - Parameters:
    ///   - parameters: The query of the request.
    ///   - client: The client with the ID of the request.
    ///   - issuer: The issuer to which it was sent.
    /// - Throws: `OAuthError`. The browser stays on the broker's page: a redirect that no owner has approved would lead
    ///   a person to the site of any client that registers itself (RFC 9700, section 4.11.2).
    init(_ parameters: [String: String], of client: OAuthClient, issuer: String) throws(OAuthError) {
        self.client = client
        redirect = try client.redirect(to: parameters["redirect_uri"] ?? "")
        guard parameters["response_type"] == "code", parameters["response_mode"] ?? "query" == "query" else {
            throw OAuthError(.unsupportedResponseType, "only the response type code is supported")
        }
        // Without the method, RFC 7636 means a plain challenge, which whoever sees this request could answer.
        guard parameters["code_challenge_method"] == "S256", let challenge = parameters["code_challenge"],
            challenge.utf8.count == 43, Data(base64URL: challenge) != nil
        else {
            throw OAuthError(.invalidRequest, "the request needs PKCE with the method S256 (RFC 7636)")
        }
        self.challenge = challenge
        // RFC 8707, section 2: clients from before it, and the conformance suite, name no resource.
        resource = try OAuthResource(parameters["resource"] ?? "\(issuer)/mcp", of: issuer)
        state = parameters["state"]
        guard state?.utf8.count ?? 0 <= Self.maxState else {
            throw OAuthError(.invalidRequest, "the state is longer than \(Self.maxState) bytes")
        }
        // A server may ignore a part of the scopes (RFC 6749, section 3.3). The answer names those that are given.
        let asked = Set((parameters["scope"] ?? "").split(separator: " ").compactMap { Scope(rawValue: String($0)) })
        let known = asked.intersection(Self.supportedScopes)
        scopes = known.isEmpty ? Self.defaultScopes : known
    }

    var permissions: Permissions { Permissions(scopes, on: resource.selector) }

    /// Returns whether a text is the secret of which `challenge` is the hash. Takes constant time for one length.
    func isAnswered(by verifier: String) -> Bool {
        guard (43...128).contains(verifier.utf8.count),
            verifier.utf8.allSatisfy({ $0.isLetterOrDigit || "-._~".utf8.contains($0) }),
            let expected = Data(base64URL: challenge)
        else { return false }
        return SHA256.hash(data: Data(verifier.utf8)) == expected
    }

    /// Returns the URI with an answer, which names the issuer (RFC 9207).
    func answer(_ name: String, _ value: String) -> String {
        let state = state.map { [(name: "state", value: $0)] } ?? []
        return redirect.adding([(name, value)] + state + [("iss", resource.issuer)])
    }
}
