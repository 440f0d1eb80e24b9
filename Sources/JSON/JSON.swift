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

extension JSON {
    /// What it is, as sentences say it: `a text`.
    package var kind: String {
        switch self {
        case .null: "null"
        case .bool(let value): "\(value)"
        case .number: "a number"
        case .string: "a text"
        case .array: "a list"
        case .object: "an object"
        }
    }
}

/// A number with the digits that it was written with: `1.0` is not made `1`, and no 64-bit id is rounded.
package struct JSONNumber: Hashable, Sendable {
    /// As in RFC 8259, section 6.
    package let text: String

    package init(_ value: Int) { text = String(value) }

    /// - Parameter text: Must be a number by the grammar; the parser and the integers see to it.
    init(grammatical text: String) { self.text = text }

    /// Nil where it is no whole number or does not fit: `3` and `3.0` are 3, `1e3` is 1,000.
    package var int: Int? { Int(text) ?? Double(text).flatMap { Int(exactly: $0) } }
    package var double: Double? { Double(text) }
}

/// The members of a JSON object in their order, each name once.
package struct JSONObject: Hashable, Sendable {
    package struct Member: Hashable, Sendable {
        package let name: String
        package var value: JSON

        package init(name: String, value: JSON) {
            self.name = name
            self.value = value
        }

        /// Section 8.3: names are compared unit by unit, so that two spellings of é are two names.
        func isCalled(_ name: String) -> Bool { self.name.utf8.elementsEqual(name.utf8) }
    }

    package private(set) var members: [Member]

    /// - Parameter members: Where a name comes twice, the last one counts, in the place of the first.
    package init(_ members: [Member] = []) {
        self.members = []
        self.members.reserveCapacity(members.count)
        for member in members { self[member.name] = member.value }
    }

    /// For the parser, which has looked for names that come twice.
    init(unique members: [Member]) { self.members = members }

    /// A new name goes to the end; nil takes the member away.
    package subscript(name: String) -> JSON? {
        get { members.first { $0.isCalled(name) }?.value }
        set {
            let place = members.firstIndex { $0.isCalled(name) }
            switch (place, newValue) {
            case (let place?, let value?): members[place].value = value
            case (let place?, nil): members.remove(at: place)
            case (nil, let value?): members.append(Member(name: name, value: value))
            case (nil, nil): break
            }
        }
    }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, JSON)...) {
        self.init(elements.map { Member(name: $0.0, value: $0.1) })
    }
}
