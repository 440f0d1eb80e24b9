import Crypto
import FoundationEssentials

/// Signs session ids, so that the broker knows its own after a restart without having kept them.
///
/// An id gives nobody anything: each request shows by itself who makes it. It only joins the requests of one client.
package struct SessionKey: Sendable, Codable {
    private let key: Data

    /// A new one.
    package init() { key = SymmetricKey(size: .bits256).withUnsafeBytes { Data($0) } }

    /// `<random>.<revision>.<signature>`: visible ASCII, as MCP wants it.
    func makeID(for revision: Revision) -> String {
        let random = SymmetricKey(size: .bits128).withUnsafeBytes { Data($0) }
        let text = "\(Self.text(of: random)).\(revision.rawValue)"
        return "\(text).\(signature(of: text))"
    }

    /// The revision that was agreed on in that session; nil when the id is not one of ours.
    func revision(of id: String) -> Revision? {
        let parts = id.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, id.utf8.count < 100, let revision = Revision(rawValue: String(parts[1])) else {
            return nil
        }
        let expected = Array(signature(of: "\(parts[0]).\(parts[1])").utf8)
        // Every byte is compared, whichever is wrong: how long it takes says nothing about the signature.
        let given = Array(parts[2].utf8)
        guard given.count == expected.count else { return nil }
        return zip(given, expected).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0 ? revision : nil
    }

    private func signature(of text: String) -> String {
        let code = HMAC<SHA256>.authenticationCode(
            for: Data("patchbay mcp session 1 \(text)".utf8),
            using: SymmetricKey(data: key)
        )
        return Self.text(of: Data(code.prefix(16)))
    }

    /// RFC 4648, section 5, without padding.
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
