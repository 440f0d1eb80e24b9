import FoundationEssentials
import Model

/// The address of a client's metadata document, which is the client's ID (draft-ietf-oauth-client-id-metadata-document,
/// section 3).
///
/// Stricter than the draft: a host name, the port of https, and no query. So an ID reaches no other service of a host.
package struct ClientMetadataURL: Hashable, Sendable {
    package let text: String
    package let host: String
    /// The path, for the request line.
    package let path: String

    /// Returns whether an ID is meant as such an address. Every other ID comes from a registration.
    static func isOne(_ id: String) -> Bool { id.hasPrefix("https:") }

    /// - Throws: `OAuthError` with `invalid_client`.
    package init(_ id: String) throws(OAuthError) {
        guard id.utf8.count <= RedirectURI.limit,
            let match = id.wholeMatch(of: #/https://([a-z0-9.-]+)(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)/#),
            Self.isName(match.1), !match.2.split(separator: "/").contains(where: Self.isDots)
        else {
            throw OAuthError(
                .invalidClient,
                "the URL of a client is https, with a host name in small letters and a path, without port and query"
            )
        }
        (text, host, path) = (id, String(match.1), String(match.2))
    }

    /// Returns whether a host is a name with a domain, and no address in any spelling.
    private static func isName(_ host: Substring) -> Bool {
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        return host.utf8.count <= 253 && labels.count > 1 && labels.allSatisfy { (1...63).contains($0.utf8.count) }
            && labels.last?.first?.isLetter == true
    }

    private static func isDots(_ segment: Substring) -> Bool {
        [".", ".."].contains(segment.lowercased().replacing("%2e", with: "."))
    }
}

extension OAuthClient {
    /// Reads a metadata document, which names its own address. So the host of the address vouches for the redirect URIs.
    ///
    /// - Throws: `OAuthError` with `invalid_client` or `invalid_redirect_uri`.
    init(metadata bytes: [UInt8], at url: ClientMetadataURL) throws(OAuthError) {
        func refusal(_ reason: String) -> OAuthError {
            OAuthError(.invalidClient, "the metadata document of the client \(reason)")
        }
        guard let document = try? JSON(parsing: bytes), document.object != nil else {
            throw refusal("is not a JSON object")
        }
        guard document["client_id"]?.string == url.text else { throw refusal("has another client_id than its URL") }
        // A public document has no secret. Without this member, the broker is asked for none either.
        guard document["client_secret"] == nil, document["client_secret_expires_at"] == nil,
            document["token_endpoint_auth_method"].map({ $0.string == "none" }) ?? true
        else { throw refusal("needs a secret or a key; this broker supports token_endpoint_auth_method none") }
        for (member, needed) in [("grant_types", "authorization_code"), ("response_types", "code")] {
            guard document[member].map({ $0.array?.contains(.string(needed)) == true }) ?? true else {
                throw refusal("lacks \(needed) in \(member)")
            }
        }
        guard let name = document["client_name"]?.string, let list = document["redirect_uris"]?.array else {
            throw refusal("lacks client_name or redirect_uris")
        }
        let uris = list.compactMap(\.string)
        guard uris.count == list.count else { throw refusal("has a redirect URI that is no text") }
        try self.init(id: url.text, name: name, redirectURIs: uris, host: url.host)
    }
}

/// Fetches the metadata documents of clients, and keeps the valid ones for a time.
package actor ClientMetadataCache {
    /// Returns the body of a document, over https and from a public address. Throws `OAuthError`.
    package typealias Fetch = @Sendable (ClientMetadataURL) async throws -> [UInt8]

    /// Maximum number of documents that are kept, and of fetches at a time, in total and for each requester.
    static let limit = 64
    static let fetchLimit = 8
    static let fetchLimitPerRequester = 2
    /// Seconds for which a document is kept.
    static let lifetime: Duration = .seconds(600)

    private let fetch: Fetch
    private let now: @Sendable () -> ContinuousClock.Instant
    private var clients: [ClientMetadataURL: (client: OAuthClient, expires: ContinuousClock.Instant)] = [:]
    private var fetching: [AccessRequestQueue.Requester: Int] = [:]

    package init(
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        fetch: @escaping Fetch
    ) {
        (self.now, self.fetch) = (now, fetch)
    }

    /// Returns the client with an address. An error is not kept.
    ///
    /// - Throws: `OAuthError`; `AccessError.limit`.
    func client(at url: ClientMetadataURL, for requester: AccessRequestQueue.Requester) async throws -> OAuthClient {
        clients = clients.filter { now() < $0.value.expires }
        if let kept = clients[url] { return kept.client }
        guard fetching.values.reduce(0, +) < Self.fetchLimit,
            fetching[requester, default: 0] < Self.fetchLimitPerRequester
        else { throw AccessError.limit("too many metadata documents of clients are fetched now; try again later") }
        fetching[requester, default: 0] += 1
        defer { fetching[requester] = fetching[requester].flatMap { $0 > 1 ? $0 - 1 : nil } }
        let client = try OAuthClient(metadata: try await fetch(url), at: url)
        if clients.count >= Self.limit, let oldest = clients.min(by: { $0.value.expires < $1.value.expires }) {
            clients[oldest.key] = nil
        }
        clients[url] = (client, now() + Self.lifetime)
        return client
    }
}
