/// Collects the errors of a file, so that one run reports all of them.
package struct TOMLErrorCollector {
    package private(set) var errors: [TOMLError] = []

    package init() {}

    /// Reads one part of the file. An error does not prevent the reading of other parts.
    package mutating func attempt(_ body: () throws(TOMLError) -> Void) {
        do { try body() } catch { errors += error.errors }
    }

    /// Returns a value of the file; nil if the value is invalid.
    package mutating func value<Value>(_ body: () throws(TOMLError) -> Value) -> Value? {
        do { return try body() } catch {
            errors += error.errors
            return nil
        }
    }
}
