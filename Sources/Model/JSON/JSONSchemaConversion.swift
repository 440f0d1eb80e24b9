/// Converts values whose type differs from the schema's, but whose meaning is unambiguous.
extension JSONSchemaNode {
    /// Returns the value in the types that the schema names.
    ///
    /// A value of another type is converted if the schema names exactly one type beside null, and if the conversion is
    /// exact. A null that the schema does not allow counts as an optional member that was left out.
    /// - Parameter value: The value.
    /// - Returns: The value, and what was done for each part, such as `text to integer`; empty for an unchanged value.
    package func converted(_ value: JSON) -> (value: JSON, conversions: [String]) {
        var conversions: [String] = []
        return (converted(value, &conversions), conversions)
    }

    private func converted(_ value: JSON, _ conversions: inout [String]) -> JSON {
        var value = value
        if let types, !types.isSuperset(of: JSONTypes(of: value)), let exact = Self.exact(value, as: types) {
            conversions.append(exact.conversion)
            value = exact.value
        }
        switch value {
        case .array(let elements):
            guard let items else { return value }
            return .array(elements.map { items.converted($0, &conversions) })
        case .object(let object):
            let members = object.members.compactMap { member -> JSONObject.Member? in
                guard let schema = self.member(member.name) else { return member }
                if member.value.isNull, !isRequired(member.name), schema.types?.contains(.null) == false {
                    conversions.append("null left out")
                    return nil
                }
                return JSONObject.Member(name: member.name, value: schema.converted(member.value, &conversions))
            }
            return .object(JSONObject(unique: members))
        case .null, .bool, .number, .string: return value
        }
    }

    private static func exact(_ value: JSON, as types: JSONTypes) -> (value: JSON, conversion: String)? {
        switch (types.subtracting(.null), value) {
        case (.string, .number(let number)): return (.string(number.text), "number to text")
        case (.integer, .string(let text)):
            guard let number = number(text), number.utf8.allSatisfy({ $0 == 0x2D || (0x30...0x39).contains($0) }) else {
                return nil
            }
            return (.number(JSONNumber(grammatical: number)), "text to integer")
        case (.number, .string(let text)):
            return number(text).map { (.number(JSONNumber(grammatical: $0)), "text to number") }
        case (.boolean, .string("true")): return (true, "text to boolean")
        case (.boolean, .string("false")): return (false, "text to boolean")
        case (.array, .string(let text)): return parsed(text).flatMap { $0.array == nil ? nil : ($0, "text to list") }
        case (.object, .string(let text)):
            return parsed(text).flatMap { $0.object == nil ? nil : ($0, "text to object") }
        default: return nil
        }
    }

    /// Returns the text if it is a number of JSON without space around it.
    private static func number(_ text: String) -> String? { parsed(text)?.number?.text == text ? text : nil }

    private static func parsed(_ text: String) -> JSON? { try? JSON(parsing: text) }
}
