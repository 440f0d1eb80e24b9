import JSON
import TOMLKit

/// A parsed TOML file: its values as JSON in the order of the file, and the positions of its keys.
struct TOMLDocument {
    let file: String
    let values: JSONObject
    let positions: TOMLPositions

    /// Parses TOML text; `file` is the name for error messages.
    init(parsing text: String, file: String) throws(ProfileError) {
        let start = FilePosition(line: 1, column: 1)
        // TOMLKit would read the text only up to the NUL.
        guard !text.utf8.contains(0) else { throw .syntax(file: file, at: start, reason: "the file is not text") }
        positions = TOMLPositions(text)
        if let position = positions.misplacedCharacter {
            throw .syntax(file: file, at: position, reason: "expected a key or a value, saw another character")
        }
        let table: TOMLTable
        do { table = try TOMLTable(string: text) } catch let error as TOMLParseError {
            let begin = error.source.begin
            throw .syntax(
                file: file,
                at: FilePosition(line: begin.line, column: begin.column),
                reason: error.description
            )
        } catch {
            throw .syntax(file: file, at: start, reason: "\(error)")
        }
        self.file = file
        values = try Self.object(table, at: [], file, positions)
    }

    private static func object(
        _ table: TOMLTable,
        at path: [TOMLPositions.Component],
        _ file: String,
        _ positions: TOMLPositions
    ) throws(ProfileError) -> JSONObject {
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
    ) throws(ProfileError) -> JSON {
        if let text = value.string { return .string(text) }
        if let bool = value.bool { return .bool(bool) }
        if let number = value.int { return .number(JSONNumber(number)) }
        if let number = value.double, let json = try? JSON(parsing: "\(number)") { return json }
        if let table = value.table { return .object(try object(table, at: path, file, positions)) }
        guard let array = value.array else {
            throw .invalid(
                file: file,
                at: positions[path],
                path: ProfileTable.keyPath(path),
                reason: "must not be a \(value.type)"
            )
        }
        var elements: [JSON] = []
        for index in 0..<array.count {
            elements.append(try json(array[index], at: path + [.index(index)], file, positions))
        }
        return .array(elements)
    }
}
