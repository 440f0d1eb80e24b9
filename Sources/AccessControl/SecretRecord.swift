import FoundationEssentials
import Model

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
