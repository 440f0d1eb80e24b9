/// An app's session token: the body of `PUT` and `POST /v1/endpoints/{id}/secret`.
package struct EndpointSecretSpec: Sendable, Codable {
    /// One line of printable ASCII without spaces, 1 to 4,096 bytes.
    package let secret: String
    /// An invite token (`pbi_…`) that the broker redeems first. For `POST` by an app without a grant only.
    ///
    /// Requires `client` and `name` as in `RedemptionSpec`.
    package let invite: String?
    package let client: String?
    package let name: SanitizedText?
    /// The port on which the app listens. An app logs its token before its service is announced.
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

/// A session token as a user pastes it: the token alone, or a log line that contains AppReveal's session URL.
package struct SessionTokenInput: Sendable {
    private static let parameter = "appreveal_session_token="

    package let token: String
    /// The port in the URL. Nil for a token alone.
    package let port: UInt16?

    /// Extracts the token. Text without a session URL is taken as the token and is validated later.
    package init(_ text: String) {
        guard let name = text.firstRange(of: Self.parameter) else {
            token = text
            port = nil
            return
        }
        token = String(text[name.upperBound...].prefix { $0 != "&" && $0 != "#" && !$0.isWhitespace })
        port = Self.port(in: text[..<name.lowerBound])
    }

    /// Returns the port in the beginning of a URL (RFC 3986, section 3.2).
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

/// The app's answer to a secret, at the moment when an owner gave the secret to the broker.
///
/// The response to `PUT /v1/endpoints/{id}/secret` has the value in a header, because the response has no body.
package enum SecretTrial: String, CaseIterable, Hashable, Sendable {
    /// The running app accepts the secret.
    case accepted
    /// The running app rejects the secret. The secret may be for the next launch.
    case rejected
    /// The app was not asked: it is away, the secret is for the launch at a port, or a test could spend the secret.
    case untried

    /// The name of the header.
    package static let header = "Patchbay-Secret"

    /// - Parameter isAccepted: The answer of the app; nil if the app was not asked.
    package init(isAccepted: Bool?) {
        self =
            switch isAccepted {
            case true?: .accepted
            case false?: .rejected
            case nil: .untried
            }
    }
}
