/// The last line of a terminal, written again and again.
struct StatusLine: Sendable {
    let errors: Console
    /// Whether somebody looks; where the line would go to a file, it is left out.
    let isShown: Bool

    /// Writes the text over what stood there (`ESC [ K`, ECMA-48 EL, removes the rest of that).
    func show(_ text: String) {
        if isShown, errors.isTerminal { errors.write("\r\(text)\u{1B}[K") }
    }

    func clear() {
        if isShown, errors.isTerminal { errors.write("\r\u{1B}[K") }
    }
}
