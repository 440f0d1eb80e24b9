/// A set of types of JSON Schema.
package struct JSONTypes: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let string = JSONTypes(rawValue: 1)
    package static let integer = JSONTypes(rawValue: 2)
    /// Every number: an integer is a number too.
    package static let number = JSONTypes(rawValue: 2 | 4)
    package static let boolean = JSONTypes(rawValue: 8)
    package static let array = JSONTypes(rawValue: 16)
    package static let object = JSONTypes(rawValue: 32)
    package static let null = JSONTypes(rawValue: 64)

    private static let phrases: [(types: JSONTypes, name: String, phrase: String)] = [
        (.string, "string", "a text"), (.number, "number", "a number"), (.integer, "integer", "a whole number"),
        (.boolean, "boolean", "true or false"), (.array, "array", "a list"), (.object, "object", "an object"),
        (.null, "null", "null"),
    ]

    /// The type of a value. `5.0` is an integer (2020-12, core, section 4.2.3).
    package init(of value: JSON) {
        switch value {
        case .null: self = .null
        case .bool: self = .boolean
        case .number(let number):
            // A number that is no integer has the other bit of `number` only.
            self = number.double.map { $0 == $0.rounded() } == true ? .integer : .number.subtracting(.integer)
        case .string: self = .string
        case .array: self = .array
        case .object: self = .object
        }
    }

    /// Reads the value of the keyword `type`; nil if it names no type, or an unknown one.
    init?(named keyword: JSON?) {
        switch keyword {
        case .string(let name):
            guard let types = Self.phrases.first(where: { $0.name == name })?.types else { return nil }
            self = types
        case .array(let names):
            guard !names.isEmpty else { return nil }
            self = []
            for name in names {
                guard name.array == nil, let types = JSONTypes(named: name) else { return nil }
                formUnion(types)
            }
        default: return nil
        }
    }

    /// The names of the types, as in a schema.
    package var names: [String] { described.map(\.name) }

    /// The types for a message, such as `a whole number or null`.
    var phrase: String { described.map(\.phrase).joined(separator: " or ") }

    private var described: [(types: JSONTypes, name: String, phrase: String)] {
        Self.phrases.filter { contains($0.types) && !($0.types == .integer && contains(.number)) }
    }
}
