/// A promise that a parser did not keep.
struct Violation: Error, CustomStringConvertible {
    let promise: String

    var description: String { "not kept: \(promise)" }
}

/// - Throws: `Violation` when it does not hold.
func promise(_ words: @autoclosure () -> String, _ holds: Bool) throws(Violation) {
    guard holds else { throw Violation(promise: words()) }
}
