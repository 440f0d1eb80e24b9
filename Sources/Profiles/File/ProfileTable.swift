import JSON

/// One table of a profile file. Its functions return values, or throw errors with the position and the key.
struct ProfileTable {
    let document: TOMLDocument
    let path: [TOMLPositions.Component]
    let values: JSONObject

    /// Creates the table of the whole file.
    init(_ document: TOMLDocument) { self.init(document, path: [], values: document.values) }

    private init(_ document: TOMLDocument, path: [TOMLPositions.Component], values: JSONObject) {
        self.document = document
        self.path = path
        self.values = values
    }

    /// Rejects every other key.
    func allow(_ keys: [String]) throws(ProfileError) {
        for member in values.members where !keys.contains(member.name) {
            let suggestion = NameSuggestionFormatter.text(for: member.name, among: keys, listedAs: "keys")
            throw error(member.name, "is not a key here\(suggestion)")
        }
    }

    /// Returns the error of a key.
    func error(_ key: String, _ reason: String) -> ProfileError { error([.key(key)], reason) }

    private func error(_ subpath: [TOMLPositions.Component], _ reason: String) -> ProfileError {
        let path = path + subpath
        return .invalid(
            file: document.file,
            at: document.positions[path],
            path: Self.keyPath(path),
            reason: reason
        )
    }

    // MARK: Values

    /// Returns the converted value of a key, or nil if the key is absent. `shape` describes a valid value.
    func optional<Value>(_ key: String, _ shape: String, _ convert: (JSON) -> Value?) throws(ProfileError) -> Value? {
        guard let json = values[key] else { return nil }
        guard let value = convert(json) else { throw error(key, "must be \(shape), but is \(Self.shown(json))") }
        return value
    }

    func required<Value>(_ key: String, _ shape: String, _ convert: (JSON) -> Value?) throws(ProfileError) -> Value {
        guard let value = try optional(key, shape, convert) else {
            throw error(key, "is missing; it must be \(shape)")
        }
        return value
    }

    func text(_ key: String) throws(ProfileError) -> String? { try optional(key, "a text in quotes", \.string) }

    func requiredText(_ key: String) throws(ProfileError) -> String {
        try required(key, "a text in quotes", \.string)
    }

    func flag(_ key: String) throws(ProfileError) -> Bool {
        try optional(key, "true or false", \.bool) ?? false
    }

    func number(_ key: String, in range: ClosedRange<Int>) throws(ProfileError) -> Int? {
        try optional(key, "a whole number from \(range.lowerBound) to \(range.upperBound)") { json in
            json.int.flatMap { range.contains($0) ? $0 : nil }
        }
    }

    func pointer(_ key: String) throws(ProfileError) -> JSONPointer? {
        try optional(key, "a JSON pointer, such as \"/value/name\"") { $0.string.flatMap(JSONPointer.init) }
    }

    /// Returns the elements of a list; an absent list is empty.
    func list<Value>(_ key: String, of shape: String, _ convert: (JSON) -> Value?) throws(ProfileError) -> [Value] {
        let elements = try optional(key, "a list", \.array) ?? []
        var converted: [Value] = []
        for (index, element) in elements.enumerated() {
            guard let value = convert(element) else {
                throw error([.key(key), .index(index)], "must be \(shape), but is \(Self.shown(element))")
            }
            converted.append(value)
        }
        return converted
    }

    // MARK: Tables

    func table(_ key: String) throws(ProfileError) -> ProfileTable? {
        try optional(key, "a table", \.object).map { subtable([.key(key)], $0) }
    }

    /// Returns the tables of `[[key]]`.
    func tables(_ key: String) throws(ProfileError) -> [ProfileTable] {
        let objects = try list(key, of: "a table", \.object)
        return objects.enumerated().map { subtable([.key(key), .index($0.offset)], $0.element) }
    }

    private func subtable(_ subpath: [TOMLPositions.Component], _ values: JSONObject) -> ProfileTable {
        ProfileTable(document, path: path + subpath, values: values)
    }

    /// Formats a path: `session.acquire`, `ports, item 2`, or `[[tool]] number 1: path`.
    static func keyPath(_ path: [TOMLPositions.Component]) -> String {
        if path.count > 1, case .key(let key) = path[0], case .index(let index) = path[1],
            path.count > 2 || key == "tool"
        {
            let table = "[[\(key)]] number \(index + 1)"
            return path.count == 2 ? table : "\(table): \(keyPath(Array(path[2...])))"
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
