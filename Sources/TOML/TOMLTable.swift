package import Model

/// One table of a TOML file. Its functions return values, or throw errors with the position and the key.
package struct TOMLTable {
    let document: TOMLDocument
    let path: [TOMLPositions.Component]
    package let values: JSONObject

    /// Creates the table of the whole file.
    package init(_ document: TOMLDocument) { self.init(document, path: [], values: document.values) }

    private init(_ document: TOMLDocument, path: [TOMLPositions.Component], values: JSONObject) {
        self.document = document
        self.path = path
        self.values = values
    }

    /// Rejects every other key, with one error for each.
    ///
    /// - Parameters:
    ///   - keys: The keys of this table.
    ///   - others: The keys of other tables as `table.key`, for suggestions.
    /// - Throws: `TOMLError` with the nearest key of each error.
    package func allow(_ keys: [String], others: [String] = []) throws(TOMLError) {
        let errors = values.members.filter { !keys.contains($0.name) }.map { member in
            let suggestion = SimilarNameFinder.suggestion(for: member.name, among: keys, listedAs: "keys")
            let hasNear = !SimilarNameFinder.of(member.name, among: keys, count: 1).isEmpty
            let place = hasNear ? nil : Self.nearest(to: member.name, among: others)
            let remark = place.map { "; another table has \($0)" } ?? ""
            return error(member.name, saying: "there is no such key\(suggestion)\(remark)")
        }
        if let error = TOMLError.joining(errors) { throw error }
    }

    /// Returns the `table.key` with the key that is nearest to a name.
    private static func nearest(to name: String, among keys: [String]) -> String? {
        func key(_ path: String) -> String { String(path.drop { $0 != "." }.dropFirst()) }
        let near = SimilarNameFinder.of(name, among: keys.map(key), count: 1).first
        return near.flatMap { near in keys.first { key($0) == near } }
    }

    /// The position of a key; nil if the key is absent.
    package func position(of key: String) -> FilePosition? {
        values[key].map { _ in document.positions[path + [.key(key)]] }
    }

    /// Returns the error of a key; `predicate` continues the name of the key, such as `must be true or false`.
    package func error(_ key: String, _ predicate: String) -> TOMLError {
        document.error(at: path + [.key(key)], predicate)
    }

    /// Returns the error of a key with a whole sentence about it.
    package func error(_ key: String, saying sentence: String) -> TOMLError {
        document.error(at: path + [.key(key)], sentence, separator: ": ")
    }

    // MARK: Values

    /// Returns the converted value of a key, or nil if the key is absent. `shape` describes a valid value.
    package func optional<Value>(
        _ key: String,
        _ shape: String,
        _ convert: (JSON) -> Value?
    ) throws(TOMLError) -> Value? {
        guard let json = values[key] else { return nil }
        guard let value = convert(json) else { throw error(key, "must be \(shape), but is \(Self.shown(json))") }
        return value
    }

    package func required<Value>(
        _ key: String,
        _ shape: String,
        _ convert: (JSON) -> Value?
    ) throws(TOMLError) -> Value {
        guard let value = try optional(key, shape, convert) else {
            // The key may be in a statement that was left out.
            throw document.omission ?? error(key, "is missing; it must be \(shape)")
        }
        return value
    }

    package func required<Value>(_ key: String, _ format: ValueFormat<Value>) throws(TOMLError) -> Value {
        try required(key, format.shape, format.parse)
    }

    package func text(_ key: String) throws(TOMLError) -> String? { try ValueFormat.text.read(self, key) }

    package func requiredText(_ key: String) throws(TOMLError) -> String { try required(key, .text) }

    package func flag(_ key: String, default absent: Bool = false) throws(TOMLError) -> Bool {
        try ValueFormat.flag.read(self, key) ?? absent
    }

    package func number(_ key: String, in range: ClosedRange<Int>) throws(TOMLError) -> Int? {
        try ValueFormat.number(in: range).read(self, key)
    }

    package func duration(_ key: String, in range: ClosedRange<Int>) throws(TOMLError) -> DurationText? {
        try ValueFormat.duration(in: range).read(self, key)
    }

    package func pointer(_ key: String) throws(TOMLError) -> JSONPointer? {
        try optional(key, "a JSON pointer, such as \"/value/name\"") { $0.string.flatMap(JSONPointer.init) }
    }

    /// Returns the converted elements of a list, or `absent` without the key. `shape` describes a valid element.
    package func list<Value>(
        _ key: String,
        of shape: String,
        default absent: [Value] = [],
        _ convert: (JSON) -> Value?
    ) throws(TOMLError) -> [Value] {
        guard let list = values[key] else { return absent }
        guard let elements = list.array else {
            let shown = Self.shown(list)
            throw error(key, "must be a list of values in [], but is \(shown): write \(key) = [\(shown)]")
        }
        var (converted, errors): ([Value], [TOMLError]) = ([], [])
        for (index, element) in elements.enumerated() {
            if let value = convert(element) {
                converted.append(value)
            } else {
                let path = path + [.key(key), .index(index)]
                errors.append(document.error(at: path, "must be \(shape), but is \(Self.shown(element))"))
            }
        }
        if let error = TOMLError.joining(errors) { throw error }
        return converted
    }

    package func list<Value>(_ key: String, of format: ValueFormat<Value>) throws(TOMLError) -> [Value] {
        try list(key, of: format.shape, format.parse)
    }

    // MARK: Tables

    package func table(_ key: String) throws(TOMLError) -> TOMLTable? {
        try optional(key, "a table", \.object).map { TOMLTable(document, path: path + [.key(key)], values: $0) }
    }

    /// Returns the tables of `[[key]]`.
    package func tables(_ key: String) throws(TOMLError) -> [TOMLTable] {
        if let value = values[key], value.array == nil { throw error(key, "must have the header [[\(key)]]") }
        let objects = try list(key, of: "a table", \.object)
        return objects.enumerated().map {
            TOMLTable(document, path: path + [.key(key), .index($0.offset)], values: $0.element)
        }
    }

    /// Formats a path: `session.acquire`, `ports, item 2`, or `[[tool]] number 1: path`.
    static func keyPath(_ path: [TOMLPositions.Component]) -> String {
        if path.count > 2, case .key(let key) = path[0], case .index(let index) = path[1] {
            return "[[\(key)]] number \(index + 1): \(keyPath(Array(path[2...])))"
        }
        var text = ""
        for component in path {
            switch component {
            case .key(let key): text += text.isEmpty ? key : ".\(key)"
            case .index(let index): text += ", item \(index + 1)"
            }
        }
        return text
    }

    private static func shown(_ json: JSON) -> String {
        switch json {
        case .string(let text) where text.utf8.count <= 80: "\"\(text)\""
        case .number(let number): number.text
        default: json.typeDescription
        }
    }
}
