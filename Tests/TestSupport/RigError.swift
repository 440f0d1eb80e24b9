/// Why the rig could not do its part: a sentence for whoever reads the test's output.
package struct RigError: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }

    /// A failed call of the C library; reads `errno`, so it must come right after the call.
    package init(call: String) { self.init("\(call) failed: \(SystemCode.text)") }
}
