/// A text that is shown to nobody: an app's session token, an invite, a grant's token.
///
/// Printing, interpolating, dumping and reflecting it shows nothing of it.
struct Secret: Sendable, Equatable {
    private let text: String

    init(_ text: String) { self.text = text }

    var isEmpty: Bool { text.isEmpty }

    /// For the one who is to have it, and for nothing else.
    func reveal() -> String { text }

    /// A message without the tokens that somebody typed into it: of each the id is left, which is no secret.
    static func redacted(_ message: String) -> String {
        message.replacing(#/\b(pb[ig]_[0-9A-Za-z]{8})_[0-9A-Za-z]+(_[0-9A-Za-z]+)?/#) { "\($0.output.1)_…" }
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    var description: String { "(secret)" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: []) }
}
