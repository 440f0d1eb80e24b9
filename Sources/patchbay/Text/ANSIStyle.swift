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
