import TestSupport
import Testing

/// The two programs with the same command line.
enum Forwarder: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case iproxy
    case patchbay

    var testDescription: String { rawValue }

    /// The client's time limit for an operation of milliseconds: 1 s for iproxy, which may hang; 10 s for Patchbay.
    var timeLimit: Duration { self == .iproxy ? .seconds(1) : .seconds(10) }

    /// Records the observation and checks the promise.
    ///
    /// - Parameters:
    ///   - promise: The expected behavior.
    ///   - isKept: True if the behavior was observed.
    ///   - seen: The observed figures.
    ///   - weakness: The reason why iproxy 2.0.2 may break the promise; such a failure is noted and fails no test.
    ///   - sourceLocation: The source location of the promise.
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
