/// The position of a request in a distributed trace (W3C Trace Context).
///
/// Patchbay passes a trace context on and never begins a trace of its own.
package struct TraceContext: Hashable, Sendable {
    package static let parentName = "traceparent"
    package static let stateName = "tracestate"
    /// The maximum size of `tracestate` in bytes. Every implementation passes on this size (section 3.3.1.5).
    private static let stateLimit = 512
    /// The size of `traceparent` in bytes.
    private static let parentSize = 55

    /// The value of `traceparent`.
    package let parent: String
    /// The value of `tracestate`; nil without one, and for one that is malformed or too long.
    package let state: String?

    /// Reads both values; nil for a malformed `traceparent`, without which `tracestate` means nothing.
    package init?(parent: String?, state: String?) {
        guard let parent, let valid = Self.validParent(parent) else { return nil }
        self.parent = valid
        self.state = state.flatMap { Self.isValidState($0) ? $0 : nil }
    }

    /// Reads the headers of a request; nil unless there is exactly one valid `traceparent`.
    ///
    /// - Parameter values: Returns every value of the field of a name.
    package init?(headers values: (String) -> [String]) {
        let (parents, states) = (values(Self.parentName), values(Self.stateName))
        guard parents.count == 1 else { return nil }
        // Several fields are one list (section 3.3).
        self.init(parent: parents[0], state: states.isEmpty ? nil : states.joined(separator: ","))
    }

    /// The ID that all requests of the trace share: 32 hexadecimal digits.
    package var traceID: String { String(parent.dropFirst(3).prefix(32)) }

    package var headers: [(name: String, value: String)] {
        [(Self.parentName, parent)] + (state.map { [(Self.stateName, $0)] } ?? [])
    }

    /// Returns the `traceparent` to send; nil for a malformed one. One of a later version is passed on as version 00
    /// (section 3.2.4).
    private static func validParent(_ text: String) -> String? {
        let bytes = Array(text.utf8)
        guard bytes.count >= parentSize, bytes.count == parentSize || bytes[parentSize] == UInt8(ascii: "-") else {
            return nil
        }
        let parts = bytes.prefix(parentSize).split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.map(\.count) == [2, 32, 16, 2], parts.allSatisfy({ $0.allSatisfy(\.isLowerHexDigit) }),
            parts[1...2].allSatisfy({ part in part.contains { $0 != UInt8(ascii: "0") } }), !text.hasPrefix("ff")
        else { return nil }
        guard !text.hasPrefix("00") else { return bytes.count == parentSize ? text : nil }
        return "00" + String(decoding: bytes[2..<parentSize], as: UTF8.self)
    }

    /// Returns whether a text is a list of at most 32 members `key=value` (section 3.3.1).
    private static func isValidState(_ text: String) -> Bool {
        guard (1...stateLimit).contains(text.utf8.count) else { return false }
        let members = text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self).trimmingBlanks }.filter { !$0.isEmpty }
        return (1...32).contains(members.count)
            && members.allSatisfy { member in
                let parts = member.utf8.split(separator: UInt8(ascii: "="), omittingEmptySubsequences: false)
                return parts.count == 2 && !parts[0].isEmpty && !parts[1].isEmpty
                    && parts[0].allSatisfy { $0.isLetterOrDigit || "_-*/@".utf8.contains($0) }
                    && parts[1].allSatisfy { (0x20...0x7E).contains($0) }
            }
    }
}

/// The trace contexts of a call: of the request's headers, and of `_meta` in the message of MCP. They pass to the app in
/// the same form.
package struct CallTrace: Hashable, Sendable {
    package let header: TraceContext?
    package let meta: TraceContext?

    package init(header: TraceContext? = nil, meta: TraceContext? = nil) { (self.header, self.meta) = (header, meta) }

    /// The ID of the trace for logs; nil without a trace.
    package var id: String? { (meta ?? header)?.traceID }
}

extension UInt8 {
    fileprivate var isLowerHexDigit: Bool { isDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(self) }
}

extension String {
    /// The text without the spaces and tabs around it.
    fileprivate var trimmingBlanks: String {
        let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
        let start = utf8.drop(while: isBlank)
        let end = start.reversed().prefix(while: isBlank).count
        return String(decoding: start.dropLast(end), as: UTF8.self)
    }
}
