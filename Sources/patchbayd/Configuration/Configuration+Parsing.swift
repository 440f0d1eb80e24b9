import Model
import TOML

/// The facts beside the file on which the validity of its values depends.
struct ConfigurationContext {
    let environment: [String: String]
    /// The endpoint kinds that profiles describe; nil accepts every kind.
    let profileKinds: [EndpointKind]?
}

/// Parses the TOML file: tables and keys in snake case, all of them optional. Everything that is not understood is an
/// error.
extension Configuration {
    /// Reads the keys of the file. A key with an error keeps its default.
    ///
    /// - Parameters:
    ///   - file: The whole file.
    ///   - context: The environment and the kinds of endpoints.
    ///   - errors: Gets each error, with its position and the valid form.
    init(_ file: TOMLTable, in context: ConfigurationContext, errors: inout TOMLErrorCollector) {
        self.init()
        errors.attempt { () throws(TOMLError) in try file.allow(ConfigurationKey.tables) }
        var tables: [String?: TOMLTable] = [nil: file]
        for name in Set(ConfigurationKey.all.compactMap(\.table)) {
            guard let table = errors.value({ () throws(TOMLError) in try file.table(name) }) ?? nil else { continue }
            tables[name] = table
            errors.attempt { () throws(TOMLError) in
                let keys = ConfigurationKey.all.filter { $0.table == name }.map(\.key)
                try table.allow(keys, others: ConfigurationKey.all.map(\.name))
            }
        }
        let keys = ConfigurationKey.all.compactMap { key in tables[key.table].map { (key, $0) } }
        for (key, table) in keys {
            errors.attempt { () throws(TOMLError) in try key.read(table, context, &self) }
        }
        for (key, table) in keys where table.values[key.key] != nil {
            guard let problem = key.check?(self, context) else { continue }
            errors.attempt { () throws(TOMLError) in throw table.error(key.key, problem) }
        }
    }
}

extension ConfigurationKey {
    /// The names of all tables, in their order.
    static let tables = all.map { $0.table ?? $0.name }.reduce(into: [String]()) { tables, name in
        if tables.last != name { tables.append(name) }
    }
}
