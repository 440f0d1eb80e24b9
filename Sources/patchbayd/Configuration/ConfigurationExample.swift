import Model

/// The text of `config/patchbay.example.toml`: every key with its documentation, and with its default or an example.
enum ConfigurationExample {
    static var text: String {
        var text = header
        var table: String?
        for key in ConfigurationKey.all {
            text += "\n"
            if let new = key.table, new != table {
                text += "[\(new)]\n"
                table = new
            }
            for line in key.documentation.split(separator: "\n") { text += "# \(line)\n" }
            // The documentation of `[[endpoint]]` has an example of its own.
            guard key.table != nil, let value = key.example ?? key.value(Configuration()) else { continue }
            text += "\(key.example == nil ? "" : "# ")\(key.key) = \(toml(value))\n"
        }
        return text
    }

    private static var header: String {
        let reloadable = ConfigurationKey.all.filter(\.isReloadable).map(\.name)
        return """
            # Patchbay's configuration with every key at its default value. The file is optional.
            # Search order: $XDG_CONFIG_HOME/patchbay/patchbay.toml, /etc/patchbay/patchbay.toml; or `patchbayd --config FILE`.
            # Unknown keys are errors. `patchbay config check` checks the file.
            # The broker reads the file at startup, and again at SIGHUP or `systemctl reload patchbayd`. Then it applies
            # \(reloadable.joined(separator: ", ")). Other changes need a restart.
            # An invalid file changes nothing.

            """
    }

    /// A value other than an object. JSON has the same meaning in TOML.
    private static func toml(_ json: JSON) -> String {
        json.array.map { "[\($0.map(\.text).joined(separator: ", "))]" } ?? json.text
    }
}
