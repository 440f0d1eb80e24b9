/// What a caller shows to be let in: a grant's token. Printing, dumping and reflecting it shows nothing of it.
package struct AccessToken: Sendable {
    private let text: String

    package init(_ text: String) { self.text = text }

    /// RFC 6750, section 2.1.
    var header: (name: String, value: String) { ("Authorization", "Bearer \(text)") }
}

extension AccessToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(token)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
