import FoundationEssentials
import Model

/// An endpoint's secret as it is kept: sealed, and worth nothing away from where it was given.
struct SecretRecord: Hashable, Sendable, Codable {
    let endpoint: EndpointID
    /// The id of the approval that stood when it was given.
    let approval: String
    /// The launch of the app that it belongs to.
    let boot: String
    /// The launch after it, where the app told its port before the broker knew of it.
    var nextBoot: String?
    /// AES-GCM: nonce, ciphertext, tag.
    let sealed: Data
    let set: EffectiveTime

    /// What the seal is bound to: the box opens only with the same words.
    var context: Data { Self.context(endpoint: endpoint, approval: approval, boot: boot, nextBoot) }

    static func context(endpoint: EndpointID, approval: String, boot: String, _ nextBoot: String?) -> Data {
        let next = nextBoot.map { "\0\($0)" } ?? ""
        return Data("patchbay endpoint secret v1\0\(endpoint)\0\(approval)\0\(boot)\(next)".utf8)
    }

    /// Whether it is for that launch.
    func isFor(_ boot: String) -> Bool { self.boot == boot || nextBoot == boot }
}
