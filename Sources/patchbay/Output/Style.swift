import ArgumentParser

/// How a piece of text stands out, where colours are on.
enum ANSIStyle: String {
    case plain = ""
    case bold = "1"
    case dim = "2"
    case red = "31"
    case green = "32"
    case yellow = "33"

    /// The text with the escapes of this style around it (ECMA-48 SGR), or as it is.
    func paint(_ text: String, isOn: Bool) -> String {
        isOn && self != .plain ? "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" : text
    }
}

/// When text is coloured.
enum ColorChoice: String, ExpressibleByArgument, CaseIterable {
    case auto
    case always
    case never

    /// The option goes before `NO_COLOR` (no-color.org), that before `FORCE_COLOR`, and both before what the terminal is.
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
