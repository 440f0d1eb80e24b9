import FoundationEssentials
import Model

/// A request to lockdownd for one value. An iPhone answers it without pairing.
///
/// On the wire, requests and replies are XML property lists, each after its length in four big-endian bytes.
struct LockdownRequest: Hashable, Sendable {
    enum Key: String, Sendable {
        case deviceName = "DeviceName"
        case productType = "ProductType"
        case productVersion = "ProductVersion"
    }

    static let name = "GetValue"

    let key: Key

    /// The length and the property list.
    var encoded: [UInt8] {
        let body = PropertyListDocument.bytes(
            keys: """
                <key>Label</key><string>patchbay</string>
                <key>Request</key><string>\(Self.name)</string>
                <key>Key</key><string>\(key.rawValue)</string>
                """
        )
        return (0..<4).reversed().map { UInt8(truncatingIfNeeded: body.count >> ($0 * 8)) } + body
    }
}

/// lockdownd's reply to a `LockdownRequest`.
struct LockdownReply: Hashable, Sendable {
    /// The value; nil if the phone has none under this key.
    let value: SanitizedText?

    /// - Throws: `LockdownError`, also if lockdownd refuses the request.
    init(_ bytes: [UInt8], to request: LockdownRequest) throws(LockdownError) {
        do {
            try PropertyListValidator.validate(bytes)
        } catch UsbmuxError.malformedMessage(let problem) {
            throw .malformedReply(problem)
        } catch {
            throw .malformedReply(error.description)
        }
        guard let content = try? PropertyListDecoder().decode(Content.self, from: Data(bytes)),
            content.request == LockdownRequest.name, content.key == nil || content.key == request.key.rawValue
        else { throw .malformedReply("a property list that is not a reply to \(LockdownRequest.name)") }
        switch content.error {
        case nil: value = content.value.map { SanitizedText($0) }
        case "MissingValue": value = nil
        case "PasswordProtected": throw .locked
        case let error?: throw .refused(SanitizedText(error))
        }
    }

    private struct Content: Decodable {
        let request: String
        let key: String?
        let error: String?
        let value: String?

        private enum CodingKeys: String, CodingKey {
            case request = "Request"
            case key = "Key"
            case error = "Error"
            case value = "Value"
        }
    }
}

/// Splits lockdownd's byte stream into replies.
///
/// Validates a length before it buffers the reply, so a false length uses no memory. The connection must be closed
/// after an error.
struct LockdownFrameDecoder: Sendable {
    /// The longest accepted reply: 64 KiB. A reply with one value takes about 400 bytes.
    static let limit = 64 << 10
    private static let headerSize = 4

    private var buffer: [UInt8] = []

    /// The number of bytes that complete the current length or reply; at least 1.
    var bytesNeeded: Int {
        guard buffer.count >= Self.headerSize else { return Self.headerSize - buffer.count }
        return max(1, Self.headerSize + length - buffer.count)
    }

    private var length: Int { buffer.prefix(Self.headerSize).reduce(0) { $0 << 8 | Int($1) } }

    mutating func append(_ bytes: [UInt8]) { buffer += bytes }

    /// Returns the next complete reply; nil if bytes are missing.
    mutating func next() throws(LockdownError) -> [UInt8]? {
        guard buffer.count >= Self.headerSize else { return nil }
        let length = length
        guard (1...Self.limit).contains(length) else {
            throw .malformedReply("a reply of \(length) bytes; the length must be 1 to \(Self.limit)")
        }
        guard buffer.count >= Self.headerSize + length else { return nil }
        defer { buffer.removeFirst(Self.headerSize + length) }
        return Array(buffer[Self.headerSize..<(Self.headerSize + length)])
    }
}
