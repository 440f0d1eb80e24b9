import FoundationEssentials
import Model

/// An app's session token.
///
/// Printing, interpolating, dumping and reflecting never show its value.
package struct EndpointSecret: Sendable {
    /// Maximum length in bytes. AppReveal's token has 64.
    static let lengthLimit = 4_096

    private let text: String

    /// Validates a secret.
    ///
    /// - Throws: `AccessError.outOfRange` unless the text is one line of printable ASCII, because it is sent in an HTTP
    ///   header.
    package init(_ text: String) throws(AccessError) {
        guard text.utf8.prefix(Self.lengthLimit + 1).count <= Self.lengthLimit, !text.isEmpty,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw .outOfRange(
                "an endpoint's secret is one line of 1 to \(Self.lengthLimit) printable ASCII characters without spaces"
            )
        }
        self.text = text
    }

    /// Returns the secret. Allowed uses: the header of a request to the endpoint, and redaction of the
    /// endpoint's responses and of the activity.
    package func reveal() -> String { text }

    /// Returns whether both secrets are the same text.
    package func isEqual(to other: EndpointSecret) -> Bool { text == other.text }
}

extension EndpointSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(secret)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// A stored secret: sealed, and bound to routes and launches.
struct SecretRecord: Hashable, Sendable, Codable {
    let endpoint: EndpointID
    let bindings: [EndpointTrust.SecretBinding]
    /// AES-GCM: nonce, ciphertext, tag.
    let sealed: Data

    /// The additional authenticated data of AES-GCM. The secret opens only with the same endpoint and bindings.
    var context: Data { Self.context(endpoint: endpoint, bindings: bindings) }

    static func context(endpoint: EndpointID, bindings: [EndpointTrust.SecretBinding]) -> Data {
        let bound = bindings.map { "\0\($0.origin)\0\($0.launch)" }.joined()
        return Data("patchbay endpoint secret v2\0\(endpoint)\(bound)".utf8)
    }
}

extension SecretRecord {
    /// Seals a secret for routes and launches.
    init(
        sealing secret: EndpointSecret,
        of endpoint: EndpointID,
        for bindings: [EndpointTrust.SecretBinding],
        _ keys: DerivedKeys
    ) throws {
        let bindings = Set(bindings).sorted { ($0.origin, $0.launch) < ($1.origin, $1.launch) }
        let context = Self.context(endpoint: endpoint, bindings: bindings)
        self.init(endpoint: endpoint, bindings: bindings, sealed: try keys.seal(secret, context: context))
    }
}
