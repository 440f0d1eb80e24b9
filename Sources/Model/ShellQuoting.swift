/// Quoting for commands in hints, which users paste into a shell.
extension String {
    /// The text as one word of a POSIX shell, without marks if the shell takes it as it is (Shell Command Language,
    /// section 2.2).
    package var shellQuoted: String {
        let isPlain = utf8.allSatisfy { $0.isLetterOrDigit || "/._-+:@,".utf8.contains($0) }
        return isPlain && !isEmpty ? self : "'\(replacing("'", with: "'\\''"))'"
    }
}
