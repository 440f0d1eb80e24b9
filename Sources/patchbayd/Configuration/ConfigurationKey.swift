import Model
import TOML

/// One key of the configuration file: how it is read, checked, shown, applied at a reload and documented.
struct ConfigurationKey: Sendable {
    /// Returns what is wrong with a key whose value is well-formed, as a continuation of its name; nil if it is right.
    typealias Check = @Sendable (Configuration, ConfigurationContext) -> String?
    /// Reads the value from the table of the key; nil if the key is absent. Gets the keys of the file before it.
    typealias Reader<Value> = @Sendable (TOMLTable, ConfigurationContext, Configuration) throws(TOMLError) -> Value?
    /// Applies a changed key to the running broker.
    typealias Application = @Sendable (Configuration, ReloadTargets) async -> Void

    /// `table.key`; `endpoint` stands for all tables of `[[endpoint]]`.
    let name: String
    /// The table of the key; nil for `endpoint`, which is a key of the file itself.
    let table: String?
    /// The name in its table.
    let key: String
    /// The lines about this key in the example file and the manual page.
    let documentation: String
    /// The value in the example file if it differs from the default.
    let example: JSON?
    /// The value; nil if the key is absent and its default depends on the environment.
    let value: @Sendable (Configuration) -> JSON?
    /// Reads the key from its table, after the keys before it. An absent key keeps its default.
    let read: @Sendable (TOMLTable, ConfigurationContext, inout Configuration) throws(TOMLError) -> Void
    /// Copies the value from the first configuration to the second.
    let copy: @Sendable (Configuration, inout Configuration) -> Void
    /// Checks the key of a file against other keys and this machine, after all keys are read.
    let check: Check?
    /// Applies a change at a reload; nil if a change needs a restart.
    let apply: Application?

    init<Value>(
        _ name: String,
        _ path: any WritableKeyPath<Configuration, Value> & Sendable,
        _ format: ValueFormat<Value>,
        read reader: Reader<Value>? = nil,
        example: JSON? = nil,
        reload apply: Application? = nil,
        check: Check? = nil,
        _ documentation: String
    ) {
        let parts = name.split(separator: ".").map(String.init)
        let key = parts[parts.count - 1]
        self.name = name
        self.key = key
        table = parts.count > 1 ? parts[0] : nil
        self.documentation = documentation
        self.example = example
        self.check = check
        self.apply = apply
        value = { format.json($0[keyPath: path]) }
        read = { (table, context, configuration) throws(TOMLError) in
            let value =
                if let reader { try reader(table, context, configuration) } else { try format.read(table, key) }
            if let value { configuration[keyPath: path] = value }
        }
        copy = { $1[keyPath: path] = $0[keyPath: path] }
    }

    /// True if a reload applies a change.
    var isReloadable: Bool { apply != nil }

    /// The line of the key in a file; nil if the key is absent.
    func line(in file: TOMLTable) -> Int? {
        let table = table.map { try? file.table($0) } ?? file
        return table?.position(of: key)?.line
    }
}
