/// A value that is not what its key wants, said in the words of the file.
struct ConfigurationValueError: Error {
    let path: [any CodingKey]
    /// The rest of the sentence after the key: `must be true or false`.
    let what: String

    var sentence: String { "\(Self.place(path)) \(what)" }

    /// `devices.probe_ports, item 2`; in a list of tables `[[endpoint]] number 1: port`.
    static func place(_ path: [any CodingKey]) -> String {
        guard path.count > 1, let index = path[1].intValue else {
            let keys = path.filter { $0.intValue == nil }.map(\.stringValue).joined(separator: ".")
            let items = path.compactMap(\.intValue).map { ", item \($0 + 1)" }.joined()
            return keys + items
        }
        let table = "[[\(path[0].stringValue)]] number \(index + 1)"
        return path.count == 2 ? table : "\(table): \(place(Array(path[2...])))"
    }
}

/// Both throw a `ConfigurationValueError`.
extension KeyedDecodingContainer {
    /// The value of a key, nil where it is not there; `shape` says what it must be: `true or false`.
    func value<Value: Decodable>(_ key: Key, _ shape: String, as type: Value.Type = Value.self) throws -> Value? {
        guard contains(key) else { return nil }
        do {
            return try decode(type, forKey: key)
        } catch DecodingError.dataCorrupted(let context) {
            // Our own types say best what is wrong with a value of theirs.
            throw ConfigurationValueError(path: context.codingPath, what: "cannot be used: \(context.debugDescription)")
        } catch is DecodingError {
            throw ConfigurationValueError(path: codingPath + [key], what: "must be \(shape)")
        }
    }

    /// The value of a key that must be there.
    func required<Value: Decodable>(_ key: Key, _ shape: String, as type: Value.Type = Value.self) throws -> Value {
        guard let value = try value(key, shape, as: type) else {
            throw ConfigurationValueError(path: codingPath + [key], what: "is missing; it must be \(shape)")
        }
        return value
    }
}
