/// A JSON value (RFC 8259) that preserves the order of members and the digits of numbers.
///
/// The broker forwards an app's responses unchanged. Decoding into Swift's numbers and dictionaries would round numbers
/// and lose the order.
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

    /// Returns the member with this name; nil if there is none, or if the value is not an object.
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
    /// The type for error messages, for example `a text`.
    package var typeDescription: String {
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

/// A number with its original digits: `1.0` does not become `1`, and 64-bit IDs are not rounded.
package struct JSONNumber: Hashable, Sendable {
    /// The digits as in RFC 8259, section 6.
    package let text: String

    package init(_ value: Int) { text = String(value) }

    /// Stores a number without a check.
    ///
    /// - Parameter text: A number that matches the grammar. The parser guarantees that.
    init(grammatical text: String) { self.text = text }

    /// The value as an integer; nil for a fraction or an overflow. `3` and `3.0` are 3, `1e3` is 1,000.
    package var int: Int? { Int(text) ?? Double(text).flatMap { Int(exactly: $0) } }
    package var double: Double? { Double(text) }
}

/// The members of a JSON object in their order. Names are unique.
package struct JSONObject: Hashable, Sendable {
    package struct Member: Hashable, Sendable {
        package let name: String
        package var value: JSON

        package init(name: String, value: JSON) {
            self.name = name
            self.value = value
        }

        /// Compares names by code units (section 8.3), so the two spellings of é are two names.
        func isCalled(_ name: String) -> Bool { self.name.utf8.elementsEqual(name.utf8) }
    }

    /// The number of members above which a search for each of them would take quadratic time.
    private static let searchLimit = 16

    package private(set) var members: [Member]

    /// Creates an object from members.
    ///
    /// - Parameter members: The members in order. For a duplicate name, the last value wins, at the position of the
    ///   first.
    package init(_ members: [Member] = []) {
        self.members = []
        self.members.reserveCapacity(members.count)
        guard members.count > Self.searchLimit else {
            for member in members { self[member.name] = member.value }
            return
        }
        var indexes: [[UInt8]: Int] = [:]
        for member in members {
            let name = Array(member.name.utf8)
            if let index = indexes[name] {
                self.members[index].value = member.value
            } else {
                indexes[name] = self.members.count
                self.members.append(member)
            }
        }
    }

    /// Creates an object without a check for duplicates. The parser has checked that already.
    init(unique members: [Member]) { self.members = members }

    /// Returns the object with other values, without the members whose value becomes nil.
    package func compactMapValues(_ transform: (JSON) -> JSON?) -> JSONObject {
        JSONObject(
            unique: members.compactMap { member in
                transform(member.value).map { Member(name: member.name, value: $0) }
            }
        )
    }

    /// Gets or sets a member. A new name is appended, and nil removes the member.
    package subscript(name: String) -> JSON? {
        get { members.first { $0.isCalled(name) }?.value }
        set {
            let index = members.firstIndex { $0.isCalled(name) }
            switch (index, newValue) {
            case (let index?, let value?): members[index].value = value
            case (let index?, nil): members.remove(at: index)
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
