import Crypto
import FoundationEssentials

/// Signs session ids, so that the broker knows its own after a restart without having kept them.
///
/// An id gives nobody anything: each request shows by itself who makes it. It only joins the requests of one client.
package struct SessionIDSigner: Sendable, Codable {
    private let key: Data

    /// A new one.
    package init() { key = SymmetricKey(size: .bits256).withUnsafeBytes { Data($0) } }

    /// What was agreed on with a client, which its session's id says itself.
    struct Agreement: Hashable {
        let revision: ProtocolVersion
        let faculties: ClientCapabilities
    }

    /// `<random>.<revision>.<signature>`, or `<random>.<revision>~<faculties>.<signature>` for a client that can be asked
    /// something: visible ASCII, as MCP wants it.
    func makeID(for revision: ProtocolVersion, _ faculties: ClientCapabilities = []) -> String {
        let mark = faculties.isEmpty ? "" : "~\(faculties.text)"
        let text = "\(Self.randomText()).\(revision.rawValue)\(mark)"
        return "\(text).\(signature(of: text))"
    }

    /// 128 bits that nobody can guess, in visible ASCII.
    static func randomText() -> String { text(of: SymmetricKey(size: .bits128).withUnsafeBytes { Data($0) }) }

    /// The revision that was agreed on in that session; nil when the id is not one of ours.
    func revision(of id: String) -> ProtocolVersion? { agreement(of: id)?.revision }

    /// Nil when the id is not one of ours.
    func agreement(of id: String) -> Agreement? {
        let parts = id.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, id.utf8.count < 100, let agreement = Agreement(parts[1]) else { return nil }
        let expected = Array(signature(of: "\(parts[0]).\(parts[1])").utf8)
        // Every byte is compared, whichever is wrong: how long it takes says nothing about the signature.
        let given = Array(parts[2].utf8)
        guard given.count == expected.count else { return nil }
        return zip(given, expected).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0 ? agreement : nil
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

extension SessionIDSigner.Agreement {
    fileprivate init?(_ text: Substring) {
        let halves = text.split(separator: "~", maxSplits: 1, omittingEmptySubsequences: false)
        guard let revision = ProtocolVersion(rawValue: String(halves[0])) else { return nil }
        guard halves.count == 2 else {
            self.init(revision: revision, faculties: [])
            return
        }
        guard let faculties = ClientCapabilities(text: halves[1]) else { return nil }
        self.init(revision: revision, faculties: faculties)
    }
}
