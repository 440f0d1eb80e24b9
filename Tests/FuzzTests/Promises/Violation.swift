/// A broken promise of a parser.
struct Violation: Error, CustomStringConvertible {
    let promise: String

    var description: String { "not kept: \(promise)" }
}

/// - Throws: `Violation` if the condition is false.
func promise(_ words: @autoclosure () -> String, _ holds: Bool) throws(Violation) {
    guard holds else { throw Violation(promise: words()) }
}
