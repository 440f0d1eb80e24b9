import TestSupport
import Testing

/// The two programs that take the same command line.
enum Forwarder: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case iproxy
    case patchbay

    var testDescription: String { rawValue }

    /// How long a client waits for what takes milliseconds: short for one that is known to hang, ample for one that must not.
    var patience: Duration { self == .iproxy ? .seconds(1) : .seconds(10) }

    /// Says what was seen, and holds the program to the promise.
    ///
    /// - Parameters:
    ///   - promise: What should be so.
    ///   - isKept: Whether it was.
    ///   - seen: What was seen, in figures.
    ///   - weakness: Why iproxy 2.0.2 may break this one; that is noted, and fails no test.
    ///   - sourceLocation: Where the promise is.
    func promises(
        _ promise: String,
        _ isKept: Bool,
        seen: String,
        unless weakness: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        print("differential: \(promise): \(rawValue): \(seen)")
        let check = { _ = #expect(isKept, "\(promise): \(rawValue): \(seen)", sourceLocation: sourceLocation) }
        guard self == .iproxy, let weakness else { return check() }
        withKnownIssue("iproxy 2.0.2: \(weakness)", isIntermittent: true, sourceLocation: sourceLocation) { check() }
    }
}
