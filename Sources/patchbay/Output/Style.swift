import ArgumentParser

/// An SGR style for text (ECMA-48).
enum ANSIStyle: String {
    case plain = ""
    case bold = "1"
    case dim = "2"
    case red = "31"
    case green = "32"
    case yellow = "33"

    /// Returns the text in this style's SGR sequences, or the unchanged text if colors are off.
    func paint(_ text: String, isOn: Bool) -> String {
        isOn && self != .plain ? "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" : text
    }
}

/// The value of `--color`.
enum ColorChoice: String, ExpressibleByArgument, CaseIterable {
    case auto
    case always
    case never

    /// Decides whether to color the output.
    ///
    /// Precedence: the option, `NO_COLOR` (no-color.org), `FORCE_COLOR`, the terminal.
    func isOn(environment: [String: String], isTerminal: Bool) -> Bool {
        switch self {
        case .always: return true
        case .never: return false
        case .auto:
            if environment["NO_COLOR"]?.isEmpty == false { return false }
            if let force = environment["FORCE_COLOR"], !force.isEmpty { return force != "0" }
            return isTerminal && environment["TERM"] != "dumb"
        }
    }
}
