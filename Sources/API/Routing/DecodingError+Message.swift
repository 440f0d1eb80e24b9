import FoundationEssentials
import Model

extension DecodingError {
    /// Describes the error for the author of the document: the member, the expected type and the type found. Values are
    /// not repeated, because a value may be a misplaced secret.
    func userMessage(for body: [UInt8]) -> String {
        let document: JSON
        do { document = try JSON(parsing: body) } catch { return "the body cannot be read: \(error)" }
        switch self {
        case .keyNotFound(let key, let context): return "\(Self.location(context)) lacks \"\(key.stringValue)\""
        case .typeMismatch(let type, let context), .valueNotFound(let type, let context):
            return Self.mismatch(
                at: context,
                expected: Self.typeDescription(of: type),
                found: Self.value(at: context.codingPath, in: document)?.typeDescription
            )
        case .dataCorrupted(let context):
            // If a number does not fit its type, Foundation reports no position and calls the whole document invalid
            // JSON.
            if context.debugDescription.hasPrefix("The given data") {
                let numbers = Self.numbersOutOfRange(in: document, at: "")
                guard let only = numbers.first, numbers.count == 1 else {
                    return "a number in the body has a fraction or is out of range"
                }
                let number = SanitizedText(only.number.text, limit: 40)
                return "\(Self.quoted(only.path)) must be a whole number in its range, not \(number)"
            }
            // The standard library's message for an unknown raw value of an enumeration.
            if context.debugDescription.hasPrefix("Cannot initialize") {
                return "\(Self.location(context)) must be one of its allowed values"
            }
            return "\(Self.location(context)) cannot be read: \(context.debugDescription)"
        @unknown default: return "the body cannot be read"
        }
    }

    private static func mismatch(at context: Context, expected: String, found: String?) -> String {
        "\(location(context)) must be \(expected)" + (found.map { ", not \($0)" } ?? "")
    }

    /// Returns `the body`, or a quoted path such as `"permissions.scopes[0]"`.
    private static func location(_ context: Context) -> String {
        quoted(
            context.codingPath.reduce("") { path, key in
                key.intValue.map { "\(path)[\($0)]" } ?? joined(path, key.stringValue)
            }
        )
    }

    private static func joined(_ path: String, _ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

    private static func quoted(_ path: String) -> String {
        path.isEmpty ? "the body" : "\"\(SanitizedText(path, limit: 200))\""
    }

    /// Returns the numbers that do not fit a port. Some members allow larger numbers, but those members do not cause
    /// this error.
    private static func numbersOutOfRange(in json: JSON, at path: String) -> [(path: String, number: JSONNumber)] {
        switch json {
        case .number(let number): UInt16(number.text) == nil ? [(path, number)] : []
        case .array(let elements):
            elements.enumerated().flatMap { numbersOutOfRange(in: $0.element, at: "\(path)[\($0.offset)]") }
        case .object(let object): object.members.flatMap { numbersOutOfRange(in: $0.value, at: joined(path, $0.name)) }
        case .null, .bool, .string: []
        }
    }

    private static func value(at path: [any CodingKey], in document: JSON) -> JSON? {
        path.reduce(document) { json, key in
            guard let index = key.intValue else { return json?[key.stringValue] }
            return json?.array.flatMap { $0.indices.contains(index) ? $0[index] : nil }
        }
    }

    /// Returns a plain name for a Swift type.
    private static func typeDescription(of type: any Any.Type) -> String {
        switch type {
        case is String.Type: return "a text"
        case is Bool.Type: return "true or false"
        case is Double.Type: return "a number"
        case is any FixedWidthInteger.Type: return "a whole number"
        case is Date.Type: return "a time as in RFC 3339, in a text"
        default:
            let name = "\(type)"
            if name.hasPrefix("Dictionary") { return "an object" }
            return name.hasPrefix("Array") ? "a list" : "something else"
        }
    }
}
