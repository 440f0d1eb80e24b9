import ArgumentParser

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
