/// A JSON value (RFC 8259) as it was written: members keep their order, numbers keep their digits.
///
/// What an app answers goes through the broker unchanged; a decoder into Swift's numbers and dictionaries would round the
/// one and shuffle the other.
package enum JSON: Hashable, Sendable {
    case null
    case bool(Bool)
    case number(JSONNumber)
    case string(String)
    case array([JSON])
    case object(JSONObject)
}

extension JSON {
    package var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    package var number: JSONNumber? { if case .number(let value) = self { value } else { nil } }
    package var int: Int? { number?.int }
    package var string: String? { if case .string(let value) = self { value } else { nil } }
    package var array: [JSON]? { if case .array(let value) = self { value } else { nil } }
    package var object: JSONObject? { if case .object(let value) = self { value } else { nil } }
    package var isNull: Bool { self == .null }

    /// The member of that name; nil where there is none, or where this is no object.
    package subscript(name: String) -> JSON? { object?[name] }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    package init(stringLiteral value: String) { self = .string(value) }
    package init(integerLiteral value: Int) { self = .number(JSONNumber(value)) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
}

extension JSON: ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral {
    package init(arrayLiteral elements: JSON...) { self = .array(elements) }
    package init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(JSONObject(elements.map { JSONObject.Member(name: $0.0, value: $0.1) }))
    }
}
