import FoundationEssentials
import Model

/// The values of a team's registry: JSON with sorted keys, so equal values have equal bytes.
enum TeamCoding {
    /// The maximum size in bytes of a value that this version writes for an endpoint or a host.
    static let valueLimit = 1_536
    /// The maximum size in bytes of a value that is read. Larger ones are unreadable.
    static let readLimit = 4_096

    /// - Throws: `TeamError.notEncoded`.
    static func bytes(of value: some Encodable, for key: TeamKey) throws(TeamError) -> [UInt8] {
        do {
            return Array(try JSONCoding.encoder().encode(value))
        } catch { throw .notEncoded(key: key.text, reason: "\(error)") }
    }

    /// Returns nil for a value that this version cannot read, and for one above `readLimit`.
    static func value<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) -> Value? {
        guard bytes.count <= readLimit else { return nil }
        return try? JSONCoding.decoder().decode(type, from: Data(bytes))
    }
}
