/// A number with the digits that it was written with: `1.0` is not made `1`, and no 64-bit id is rounded.
package struct JSONNumber: Hashable, Sendable {
    /// As in RFC 8259, section 6.
    package let text: String

    package init(_ value: Int) { text = String(value) }

    /// - Parameter text: Must be a number by the grammar; the parser and the integers see to it.
    init(grammatical text: String) { self.text = text }

    /// Nil where it is no whole number or does not fit: `3` and `3.0` are 3, `1e3` is 1,000.
    package var int: Int? { Int(text) ?? Double(text).flatMap { Int(exactly: $0) } }
    package var double: Double? { Double(text) }
}
