import Model
import TOMLKit

/// A parsed TOML file: its values as JSON in the order of the file, and the positions of its keys.
package struct TOMLDocument {
    let file: String
    let values: JSONObject
    let positions: TOMLPositions
    /// The first error of the statements that were left out; nil for a whole document.
    private(set) var omission: TOMLError?

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

    /// Parses TOML text, and leaves the statements with a syntax error out.
    ///
    /// - Parameters:
    ///   - text: The text.
    ///   - file: The name for error messages.
    ///   - errors: Gets an error for each of them. A file with errors must be rejected.
    /// - Throws: The errors if no rest can be read.
    package init(recovering text: String, file: String, errors: inout TOMLErrorCollector) throws(TOMLError) {
        var lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .map { String($0) ?? "" }
        var mistakes: [TOMLError] = []
        while true {
            do {
                try self.init(parsing: lines.joined(separator: "\n"), file: file)
                omission = mistakes.first
                for mistake in mistakes { errors.attempt { () throws(TOMLError) in throw mistake } }
                return
            } catch {
                mistakes.append(error)
                guard case .syntax(_, let place, _) = error, mistakes.count <= Self.maxMistakes,
                    lines.indices.contains(place.line - 1), !lines[place.line - 1].isEmpty
                else { throw TOMLError.joining(mistakes) ?? error }
                let statement = Self.statement(at: place.line - 1, in: lines)
                for index in statement { lines[index] = "" }
            }
        }
    }

    private static let maxMistakes = 20

    /// Returns the lines from one with a mistake to the next statement. Without its header, a table is left out as well.
    private static func statement(at start: Int, in lines: [String]) -> Range<Int> {
        let isTable = isHeader(lines[start])
        let end = lines[(start + 1)...].firstIndex { isHeader($0) || !isTable && isPair($0) }
        return start..<(end ?? lines.endIndex)
    }

    private static func isPair(_ line: String) -> Bool {
        let key = line.prefix { $0 != "=" }
        return key.endIndex < line.endIndex
            && key.allSatisfy { $0.isLetter || $0.isNumber || " \t_-.\"'".contains($0) }
    }

    private static func isHeader(_ line: String) -> Bool { line.first { !$0.isWhitespace } == "[" }

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
