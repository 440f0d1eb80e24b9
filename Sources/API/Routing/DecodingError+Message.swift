import FoundationEssentials
import JSON
import Model

extension DecodingError {
    /// What is wrong where, for the person who wrote the document: the member, what belongs there, and what kind of thing is
    /// there. What it says is not repeated, as it may be a secret in the wrong place.
    func sentence(about body: [UInt8]) -> String {
        let document: JSON
        do { document = try JSON(parsing: body) } catch { return "the body cannot be read: \(error)" }
        switch self {
        case .keyNotFound(let key, let context): return "\(Self.place(context)) lacks \"\(key.stringValue)\""
        case .typeMismatch(let type, let context), .valueNotFound(let type, let context):
            return Self.misfit(context, Self.words(for: type), Self.found(at: context.codingPath, in: document)?.kind)
        case .dataCorrupted(let context):
            // Foundation does not say where there is a number that its type cannot hold, and calls the whole no JSON.
            if context.debugDescription.hasPrefix("The given data") {
                let misfits = Self.misfits(in: document, at: "")
                guard let only = misfits.first, misfits.count == 1 else {
                    return "a number in the body has a fraction, or is outside of its range"
                }
                let number = SanitizedText(only.number.text, limit: 40)
                return "\(Self.quoted(only.path)) must be a whole number in its range, not \(number)"
            }
            // What the standard library says of an enumeration's raw value.
            if context.debugDescription.hasPrefix("Cannot initialize") {
                return "\(Self.place(context)) must be one of the words for it, and is another one"
            }
            return "\(Self.place(context)) cannot be read: \(context.debugDescription)"
        @unknown default: return "the body cannot be read"
        }
    }

    private static func misfit(_ context: Context, _ wanted: String, _ found: String?) -> String {
        "\(place(context)) must be \(wanted)" + (found.map { ", not \($0)" } ?? "")
    }

    /// `the body`, or `"permissions.scopes[0]"`.
    private static func place(_ context: Context) -> String {
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

    /// The numbers that a port cannot be: of ours, some are larger, but none that is in its range is refused.
    private static func misfits(in json: JSON, at path: String) -> [(path: String, number: JSONNumber)] {
        switch json {
        case .number(let number): UInt16(number.text) == nil ? [(path, number)] : []
        case .array(let elements):
            elements.enumerated().flatMap { misfits(in: $0.element, at: "\(path)[\($0.offset)]") }
        case .object(let object): object.members.flatMap { misfits(in: $0.value, at: joined(path, $0.name)) }
        case .null, .bool, .string: []
        }
    }

    private static func found(at path: [any CodingKey], in document: JSON) -> JSON? {
        path.reduce(document) { json, key in
            guard let index = key.intValue else { return json?[key.stringValue] }
            return json?.array.flatMap { $0.indices.contains(index) ? $0[index] : nil }
        }
    }

    /// A type of Swift's as people say it.
    private static func words(for type: any Any.Type) -> String {
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
