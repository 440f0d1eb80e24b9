import FoundationEssentials
import Model

/// A value of a phone. An iPhone tells it without pairing.
///
/// On the wire, requests and replies are XML property lists, each after its length in four big-endian bytes.
enum LockdownKey: String, Sendable {
    case deviceName = "DeviceName"
    case productType = "ProductType"
    case productVersion = "ProductVersion"

    private static let requestName = "GetValue"

    /// The request for the value: the length and the property list.
    var request: [UInt8] {
        let body = propertyListDocument(
            keys: """
                <key>Label</key><string>patchbay</string>
                <key>Request</key><string>\(Self.requestName)</string>
                <key>Key</key><string>\(rawValue)</string>
                """
        )
        return (0..<4).reversed().map { UInt8(truncatingIfNeeded: body.count >> ($0 * 8)) } + body
    }

    /// Returns the value in lockdownd's reply to `request`; nil if the phone has none under this key.
    ///
    /// - Throws: `LockdownError`, also if lockdownd refuses the request.
    func value(in reply: [UInt8]) throws(LockdownError) -> SanitizedText? {
        do {
            try PropertyListValidator.validate(reply)
        } catch UsbmuxError.malformedMessage(let problem) {
            throw .malformedReply(problem)
        } catch {
            throw .malformedReply(error.description)
        }
        guard let content = try? PropertyListDecoder().decode(Content.self, from: Data(reply)),
            content.request == Self.requestName, content.key == nil || content.key == rawValue
        else { throw .malformedReply("a property list that is not a reply to \(Self.requestName)") }
        switch content.error {
        case nil: return content.value.map { SanitizedText($0) }
        case "MissingValue": return nil
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
