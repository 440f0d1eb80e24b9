/// An app's own session token, on its way to the broker: the body of `PUT` and `POST /v1/endpoints/{id}/secret`.
package struct EndpointSecretSpec: Sendable, Codable {
    /// One line of printable ASCII without blanks, 1 to 4,096 bytes.
    package let secret: String
    /// `pbi_…`: an app that has no grant yet redeems this one on the way (`POST` only); then `client` and `name` as in
    /// `RedemptionSpec`.
    package let invite: String?
    package let client: String?
    package let name: SanitizedText?
    /// Where the app says that it listens: it logs its secret before it is announced there.
    package let port: UInt16?

    package init(
        secret: String,
        invite: String? = nil,
        client: String? = nil,
        name: SanitizedText? = nil,
        port: UInt16? = nil
    ) {
        self.secret = secret
        self.invite = invite
        self.client = client
        self.name = name
        self.port = port
    }
}

/// An app's own secret as people paste it: the bare token, or the session URL that AppReveal logs, with the line around it.
package struct SessionTokenInput: Sendable {
    private static let parameter = "appreveal_session_token="

    package let token: String
    /// Where the URL says that the app listens; nil of a bare token.
    package let port: UInt16?

    /// Never fails: what is no URL is taken for a token, and whoever takes tokens says what is wrong with it.
    package init(_ text: String) {
        guard let name = text.firstRange(of: Self.parameter) else {
            token = text
            port = nil
            return
        }
        token = String(text[name.upperBound...].prefix { $0 != "&" && $0 != "#" && !$0.isWhitespace })
        port = Self.port(in: text[..<name.lowerBound])
    }

    /// The port of the URL that these are the beginning of (RFC 3986, section 3.2).
    package static func port(in beginning: Substring) -> UInt16? {
        let url = beginning.split(omittingEmptySubsequences: false, whereSeparator: \.isWhitespace).last ?? ""
        guard let scheme = url.firstRange(of: "://") else { return nil }
        let authority = url[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" }
        guard let colon = authority.lastIndex(of: ":"), authority[colon...].firstIndex(of: "]") == nil else {
            return nil
        }
        return UInt16(authority[authority.index(after: colon)...]).flatMap { $0 == 0 ? nil : $0 }
    }
}

extension SessionTokenInput: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(secret)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
