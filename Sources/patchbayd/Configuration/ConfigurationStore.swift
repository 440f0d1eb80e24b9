import Model

/// The configuration in effect, and the one that the next start would use.
///
/// A reload applies the keys that are reloadable. The other keys keep their value until a restart.
actor ConfigurationStore {
    /// A value that does not come from the configuration file.
    struct Override: Sendable {
        /// The key, such as `broker.socket`.
        let key: String
        /// The value as text.
        let value: String
        let source: ConfigurationEntry.Source
        /// The option or the variable; nil for a default that depends on the environment.
        let place: String?
    }

    private(set) var effective: Configuration
    /// The file as it was last read.
    private var loaded: LoadedConfiguration
    private let overrides: [String: Override]

    init(_ loaded: LoadedConfiguration, overrides: [Override]) {
        self.loaded = loaded
        effective = loaded.configuration
        self.overrides = Dictionary(overrides.map { ($0.key, $0) }) { first, _ in first }
    }

    /// Adopts a valid file: its reloadable keys become effective.
    ///
    /// - Returns: The keys whose value in the file differs from the effective one.
    func adopt(_ new: LoadedConfiguration) -> [ConfigurationKey] {
        let changed = ConfigurationKey.all.filter { key in
            overrides[key.name]?.source.isAboveFile != true && key.value(effective) != key.value(new.configuration)
        }
        loaded = new
        for key in changed where key.isReloadable { key.copy(new.configuration, &effective) }
        return changed
    }

    func entries() -> [ConfigurationEntry] { ConfigurationKey.all.map(entry) }

    private func entry(of key: ConfigurationKey) -> ConfigurationEntry {
        let override = overrides[key.name]
        if let override, override.source.isAboveFile || loaded.lines[key.name] == nil {
            return ConfigurationEntry(
                key: key.name,
                value: "\"\(override.value)\"",
                source: override.source,
                place: override.place
            )
        }
        // A JSON text without a table is valid TOML with the same meaning.
        let value = key.value(effective)?.text
        let next = key.value(loaded.configuration)?.text
        var entry = ConfigurationEntry(key: key.name, value: value, source: .default)
        if let line = loaded.lines[key.name], let file = loaded.configuration.file {
            entry.source = .file
            entry.place = "\(file):\(line)"
        }
        if value != next { entry.pending = next ?? "default" }
        return entry
    }
}

extension ConfigurationEntry.Source {
    /// True if a value of this source replaces the value of the file.
    fileprivate var isAboveFile: Bool { self == .option }
}
