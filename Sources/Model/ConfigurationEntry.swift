/// One key of the broker's configuration with its effective value, as `patchbay config show` lists it.
package struct ConfigurationEntry: Hashable, Sendable, Codable {
    package enum Source: String, Hashable, Sendable, Codable {
        case `default`
        /// A line of the configuration file.
        case file
        /// An option of patchbayd's command line.
        case option
        /// A variable of patchbayd's environment.
        case environment
    }

    /// `table.key`; `endpoint` stands for all tables of `[[endpoint]]`.
    package let key: String
    /// The effective value as TOML. Nil if the key is absent and has no default.
    package var value: String?
    package var source: Source
    /// The place of the value: `FILE:LINE`, the option or the variable. Nil for a default.
    package var place: String?
    /// The value in the file as TOML, if it applies only after a restart; `default` if the key is not in the file any
    /// more. Nil otherwise.
    package var pending: String?

    /// The configuration file that has the value; nil for a value of another source.
    package var file: String? {
        guard source == .file, let place, let colon = place.lastIndex(of: ":") else { return nil }
        return String(place[..<colon])
    }

    package init(key: String, value: String?, source: Source, place: String? = nil, pending: String? = nil) {
        self.key = key
        self.value = value
        self.source = source
        self.place = place
        self.pending = pending
    }
}
