/// The authentication code of a Dart VM service: the secret part of its URL.
///
/// The VM makes a new code at each start and accepts no request without the code. Descriptions do not contain the code.
package struct DartAuthCode: Hashable, Sendable {
    /// The maximum length in characters. The VM makes 12 characters: 8 random bytes in Base64 (RFC 4648, section 5).
    private static let maxLength = 128

    private let text: String

    /// Parses a code as Flutter announces it, with or without the slash that ends the URL.
    ///
    /// - Returns: Nil for text that is not one segment of a URL path, made of letters, digits and `-_.~=`.
    package init?(_ text: some StringProtocol) {
        let code = text.hasSuffix("/") ? text.dropLast() : text[...]
        let isSegment = code.utf8.allSatisfy { $0.isUnreserved || $0 == UInt8(ascii: "=") }
        let hasName = code.contains { $0 != "." }
        guard isSegment, hasName, code.utf8.count <= Self.maxLength else { return nil }
        self.text = String(code)
    }

    /// Returns the code. Allowed uses: storing the code as an endpoint secret, and redaction.
    package func reveal() -> String { text }
}

extension DartAuthCode: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(secret)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The URLs of a Dart VM service, in the forms that Flutter's tools print and accept. They contain the endpoint secret.
package struct DartVMService: Hashable, Sendable, Codable {
    /// The version of the document format.
    package let schema: Int
    /// The form for `flutter attach --debug-url` and `dart devtools`: `http://127.0.0.1:8181/CODE=/`.
    package let http: String
    /// The form for clients of the VM service protocol: `ws://127.0.0.1:8181/CODE=/ws`.
    package let webSocket: String
    /// The authentication code. Nil if none is stored for this launch of the app.
    package let authCode: String?

    /// - Parameters:
    ///   - authority: The address and port, as `127.0.0.1:8181` or `[::1]:8181`.
    ///   - authCode: The authentication code.
    package init(at authority: String, authCode: String?) {
        schema = 1
        let path = authCode.map { "/\($0)/" } ?? "/"
        http = "http://\(authority)\(path)"
        webSocket = "ws://\(authority)\(path)ws"
        self.authCode = authCode
    }

    /// Creates the URLs for a network route. Returns nil for a port of a phone, which needs a tunnel.
    package init?(at route: Route, authCode: String?) {
        guard let authority = route.networkAuthority else { return nil }
        self.init(at: authority, authCode: authCode)
    }
}
