import FoundationEssentials
import Model

/// The values of a team's registry: JSON with sorted keys, so equal values have equal bytes.
enum TeamCoding {
    /// The maximum size of a value in bytes.
    static let valueLimit = 1_536

    /// - Throws: `TeamError.notEncoded`.
    static func bytes(of value: some Encodable, for key: TeamKey) throws(TeamError) -> [UInt8] {
        do {
            return Array(try JSONCoding.encoder().encode(value))
        } catch { throw .notEncoded(key: key.text, reason: "\(error)") }
    }

    /// Returns nil for a value that this version cannot read.
    static func value<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) -> Value? {
        try? JSONCoding.decoder().decode(type, from: Data(bytes))
    }
}
