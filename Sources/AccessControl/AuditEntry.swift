import Crypto
import FoundationEssentials
import Model

/// One line of the audit log: an event, when it was, and the hash of the line before.
struct AuditEntry: Hashable, Sendable, Codable {
    /// Where the log stands: the last line's number and hash.
    struct Head: Hashable, Sendable, Codable {
        let number: Int
        let hash: String

        static let none = Head(number: 0, hash: String(repeating: "0", count: 64))
    }

    let number: Int
    /// SHA-256 of the line before, in hexadecimal.
    let before: String
    /// When, by the wall clock and by the one that counts.
    let wall: Date
    let effective: MonotonicTime
    let event: AuditEvent

    /// The line as it is written, without its end, and where the log stands after it.
    func written() throws -> (text: Data, head: Head) {
        let text = try JSONCoding.encoder().encode(self)
        return (text, Head(number: number, hash: Self.hash(of: text)))
    }

    static func hash(of text: some DataProtocol) -> String {
        SHA256.hash(data: text).reduce(into: "") { text, byte in
            text += byte < 16 ? "0" + String(byte, radix: 16) : String(byte, radix: 16)
        }
    }
}
