package import Model

/// Arguments that some models send as a text of JSON.
extension JSON {
    /// The reason why a value is no object, as the end of a sentence.
    package struct ObjectError: Error, Hashable, CustomStringConvertible {
        package let description: String
    }

    /// Returns the object, parsed from a JSON string if necessary.
    ///
    /// - Throws: The reason why the value is no object.
    package func objectOrParsed() throws(ObjectError) -> JSONObject {
        if let object { return object }
        guard let text = string else { throw ObjectError(description: "must be an object, not \(typeDescription)") }
        let parsed: JSON
        do throws(JSONError) { parsed = try JSON(parsing: Array(text.utf8)) } catch {
            let start = "must be an object; it is a text of \(text.utf8.count) bytes"
            throw ObjectError(description: "\(start) that is not complete JSON: \(error)")
        }
        guard let object = parsed.object else {
            throw ObjectError(description: "must be an object, not a text with \(parsed.typeDescription)")
        }
        return object
    }

    /// The object, parsed from a JSON string if necessary; nil if there is none.
    package var objectOrText: JSONObject? { try? objectOrParsed() }
}
