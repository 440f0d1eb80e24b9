/// An error of the test support code with a message for the test's output.
package struct TestSupportError: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }

    /// Describes a failed call of the C library. Reads `errno`, so it must come right after the call.
    package init(call: String) { self.init("\(call) failed: \(SystemCode.text)") }
}
