import Model
import TOMLKit

/// A parsed TOML file: its values as JSON in the order of the file, and the positions of its keys.
package struct TOMLDocument {
    let file: String
    let values: JSONObject
    let positions: TOMLPositions

    /// Parses TOML text; `file` is the name for error messages. Skips a byte order mark, which editors of Windows write.
    package init(parsing text: String, file: String) throws(TOMLError) {
        let text = text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
        let start = FilePosition(line: 1, column: 1)
        // TOMLKit would read the text only up to the NUL.
        guard !text.utf8.contains(0) else { throw .syntax(file: file, at: start, reason: "the file is not text") }
        positions = TOMLPositions(text)
        if let mistake = positions.mistake { throw .syntax(file: file, at: mistake.position, reason: mistake.reason) }
        let table: TOMLKit.TOMLTable
        do { table = try TOMLKit.TOMLTable(string: text) } catch let error as TOMLParseError {
            let begin = FilePosition(line: error.source.begin.line, column: error.source.begin.column)
            throw .syntax(
                file: file,
                at: begin,
                reason: SyntaxMistake(error.description, at: begin, in: text).words
            )
        } catch {
            throw .syntax(file: file, at: start, reason: "\(error)")
        }
        self.file = file
        values = try Self.object(table, at: [], file, positions)
    }

    /// Returns the error of a value; `reason` follows the name of its key.
    func error(at path: [TOMLPositions.Component], _ reason: String, separator: String = " ") -> TOMLError {
        .invalid(file: file, at: positions[path], reason: "\(TOMLTable.keyPath(path))\(separator)\(reason)")
    }

    private static func object(
        _ table: TOMLKit.TOMLTable,
        at path: [TOMLPositions.Component],
        _ file: String,
        _ positions: TOMLPositions
    ) throws(TOMLError) -> JSONObject {
        var members: [(position: FilePosition, member: JSONObject.Member)] = []
        for key in table.keys {
            guard let value = table[key] else { continue }
            let path = path + [.key(key)]
            let json = try json(value, at: path, file, positions)
            members.append((positions[path], JSONObject.Member(name: key, value: json)))
        }
        return JSONObject(members.sorted { $0.position < $1.position }.map(\.member))
    }

    private static func json(
        _ value: any TOMLValueConvertible,
        at path: [TOMLPositions.Component],
        _ file: String,
        _ positions: TOMLPositions
    ) throws(TOMLError) -> JSON {
        if let text = value.string { return .string(text) }
        if let bool = value.bool { return .bool(bool) }
        if let number = value.int { return .number(JSONNumber(number)) }
        if let number = value.double, let json = try? JSON(parsing: "\(number)") { return json }
        if let table = value.table { return .object(try object(table, at: path, file, positions)) }
        guard let array = value.array else {
            let reason = "\(TOMLTable.keyPath(path)) must not be a \(value.type)"
            throw .invalid(file: file, at: positions[path], reason: reason)
        }
        var elements: [JSON] = []
        for index in 0..<array.count {
            elements.append(try json(array[index], at: path + [.index(index)], file, positions))
        }
        return .array(elements)
    }
}
