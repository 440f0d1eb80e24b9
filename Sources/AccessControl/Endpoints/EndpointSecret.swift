import FoundationEssentials
import Model

/// An app's own session token, on its way to the app.
///
/// Printing, interpolating, dumping and reflecting it shows nothing of it.
package struct EndpointSecret: Sendable {
    /// The most bytes that one may have; AppReveal's has 64.
    static let lengthLimit = 4_096

    private let text: String

    /// - Throws: `AccessError.outOfRange` unless it is one line of printable ASCII: it travels in an HTTP header.
    package init(_ text: String) throws(AccessError) {
        guard text.utf8.prefix(Self.lengthLimit + 1).count <= Self.lengthLimit, !text.isEmpty,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw .outOfRange(
                "an endpoint's secret is one line of 1 to \(Self.lengthLimit) printable letters without blanks"
            )
        }
        self.text = text
    }

    /// For the header of a request to the endpoint, and for finding the secret in what the endpoint says; for nothing else.
    package func reveal() -> String { text }
}

extension EndpointSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(secret)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// An endpoint's secret as it is kept: sealed, and bound to the routes and launches that it was given for.
struct SecretRecord: Hashable, Sendable, Codable {
    let endpoint: EndpointID
    let bindings: [EndpointTrust.SecretBinding]
    /// AES-GCM: nonce, ciphertext, tag.
    let sealed: Data
    let set: MonotonicTime

    /// The authenticated data of the seal: it opens only with the same endpoint and bindings.
    var context: Data { Self.context(endpoint: endpoint, bindings: bindings) }

    static func context(endpoint: EndpointID, bindings: [EndpointTrust.SecretBinding]) -> Data {
        let bound = bindings.map { "\0\($0.origin)\0\($0.launch)" }.joined()
        return Data("patchbay endpoint secret v2\0\(endpoint)\(bound)".utf8)
    }
}
