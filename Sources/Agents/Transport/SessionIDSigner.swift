import Apps
import Crypto
import FoundationEssentials
import Model

/// Signs session IDs, so that the broker recognizes them after a restart without storing them.
///
/// An ID grants no permission: each request authenticates itself. The ID only links the requests of one client.
package struct SessionIDSigner: Sendable, Codable {
    private let key: Data

    /// Creates a signer with a new random key.
    package init() { key = SymmetricKey(size: .bits256).withUnsafeBytes { Data($0) } }

    /// The negotiated version and capabilities, which the session ID carries.
    struct SessionClaims: Hashable {
        let version: ProtocolVersion
        let capabilities: ClientCapabilities
    }

    /// Returns a new session ID in visible ASCII, as MCP requires.
    ///
    /// The form is `<random>.<version>.<signature>`, or `<random>.<version>~<capabilities>.<signature>` for a client
    /// with capabilities.
    func makeID(for version: ProtocolVersion, _ capabilities: ClientCapabilities = []) -> String {
        let mark = capabilities.isEmpty ? "" : "~\(capabilities.text)"
        let text = "\(Base62.random128Bits()).\(version.rawValue)\(mark)"
        return "\(text).\(signature(of: text))"
    }

    /// Returns the negotiated version of a session; nil if the signature is invalid.
    func version(of id: String) -> ProtocolVersion? { claims(of: id)?.version }

    /// Returns the claims of a session ID; nil if the signature is invalid.
    func claims(of id: String) -> SessionClaims? {
        let parts = id.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, id.utf8.count < 100, let claims = SessionClaims(parts[1]) else { return nil }
        let expected = Array(signature(of: "\(parts[0]).\(parts[1])").utf8)
        // Constant-time comparison: the duration does not depend on the position of a wrong byte.
        let given = Array(parts[2].utf8)
        guard given.count == expected.count else { return nil }
        return zip(given, expected).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0 ? claims : nil
    }

    private func signature(of text: String) -> String {
        let code = HMAC<SHA256>.authenticationCode(
            for: Data("patchbay mcp session 1 \(text)".utf8),
            using: SymmetricKey(data: key)
        )
        return Self.text(of: Data(code.prefix(16)))
    }

    /// Returns Base64 with the URL-safe alphabet (RFC 4648, section 5), without padding.
    private static func text(of data: Data) -> String {
        String(
            data.base64EncodedString().compactMap { character -> Character? in
                switch character {
                case "+": "-"
                case "/": "_"
                case "=": nil
                default: character
                }
            }
        )
    }
}

extension SessionIDSigner.SessionClaims {
    fileprivate init?(_ text: Substring) {
        let halves = text.split(separator: "~", maxSplits: 1, omittingEmptySubsequences: false)
        guard let version = ProtocolVersion(rawValue: String(halves[0])) else { return nil }
        guard halves.count == 2 else {
            self.init(version: version, capabilities: [])
            return
        }
        guard let capabilities = ClientCapabilities(text: halves[1]) else { return nil }
        self.init(version: version, capabilities: capabilities)
    }
}
