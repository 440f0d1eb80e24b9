import Crypto
import FoundationEssentials
package import Model

/// A client that has registered itself (RFC 7591), which proves nothing about who it is, or one with a metadata document.
///
/// The broker stores no registration. The ID of a registered client *is* the registration, with a MAC of this broker. So
/// it works after a restart, and any number of registrations takes no memory. The ID is no secret: PKCE and the redirect
/// URI protect the code, as for every public client.
package struct OAuthClient: Hashable, Sendable {
    /// Maximum number of redirect URIs.
    static let maxRedirects = 16
    /// Maximum size of the registration inside an ID in bytes. The ID is part of a URL.
    static let maxSize = 2_048
    /// The table name in the MAC, which no table of the database has.
    private static let table = "oauth-client"

    /// The name that the client gives itself.
    package let name: SanitizedText
    let redirects: [RedirectURI]
    package let id: String
    /// The host of the metadata document; nil for a client that has registered itself.
    let host: String?

    /// The content of an ID.
    private struct Registration: Codable {
        let name: SanitizedText
        let redirects: [String]
    }

    package var redirectURIs: [String] { redirects.map(\.text) }

    /// The digest under which a grant names the client.
    var digest: Data { Data(SHA256.hash(data: Data(id.utf8))) }

    /// - Throws: `OAuthError` with `invalid_redirect_uri`.
    init(id: String, name: String?, redirectURIs: [String], host: String? = nil) throws(OAuthError) {
        guard (1...Self.maxRedirects).contains(redirectURIs.count) else {
            throw OAuthError(.invalidRedirectURI, "a client has 1 to \(Self.maxRedirects) redirect URIs")
        }
        var redirects: [RedirectURI] = []
        for text in redirectURIs { redirects.append(try RedirectURI(text)) }
        self.redirects = redirects
        let name = SanitizedText(name ?? "")
        self.name = name.isEmpty ? SanitizedText("a client without a name") : name
        (self.id, self.host) = (id, host)
    }

    /// Registers a client.
    ///
    /// - Throws: `OAuthError` with `invalid_redirect_uri` or `invalid_client_metadata`.
    init(name: String?, redirectURIs: [String], keys: DerivedKeys) throws(OAuthError) {
        let client = try Self(id: "", name: name, redirectURIs: redirectURIs)
        let registration = Registration(name: client.name, redirects: redirectURIs)
        guard let body = try? JSONCoding.encoder().encode(registration), body.count <= Self.maxSize else {
            throw OAuthError(.invalidClientMetadata, "the name and the redirect URIs together are too long")
        }
        let mac = keys.mac(for: body, table: Self.table, id: "")
        try self.init(id: "\(body.base64URL).\(mac.base64URL)", name: name, redirectURIs: redirectURIs)
    }

    /// Reads the ID of a client that has registered with this broker.
    ///
    /// - Throws: `OAuthError` with `invalid_client`.
    init(id: String, keys: DerivedKeys) throws(OAuthError) {
        let parts = id.split(separator: ".", omittingEmptySubsequences: false)
        guard id.utf8.count <= Self.maxSize * 2, parts.count == 2,
            let body = Data(base64URL: parts[0]), let mac = Data(base64URL: parts[1]),
            keys.verifyMAC(mac, for: body, table: Self.table, id: ""),
            let registration = try? JSONCoding.decoder().decode(Registration.self, from: body)
        else {
            throw OAuthError(.invalidClient, "this broker does not know the client; let it register again")
        }
        try self.init(id: id, name: registration.name.text, redirectURIs: registration.redirects)
    }

    /// Returns the redirect URI of a request, if the client has registered it.
    ///
    /// - Throws: `OAuthError` with `invalid_redirect_uri`.
    func redirect(to text: String) throws(OAuthError) -> RedirectURI {
        let uri = try RedirectURI(text)
        guard redirects.contains(where: { $0.allows(uri) }) else {
            throw OAuthError(.invalidRedirectURI, "the client has not registered this redirect URI")
        }
        return uri
    }
}

/// base64url without padding (RFC 4648, section 5).
extension Data {
    var base64URL: String {
        base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    /// Decodes the only form that `base64URL` gives to the bytes; nil for any other text.
    init?(base64URL text: some StringProtocol) {
        let base64 = String(text).replacing("-", with: "+").replacing("_", with: "/")
        let padding = String(repeating: "=", count: (4 - base64.utf8.count % 4) % 4)
        guard let data = Data(base64Encoded: base64 + padding), data.base64URL == text else { return nil }
        self = data
    }
}
