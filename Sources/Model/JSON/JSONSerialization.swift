extension JSON {
    /// The maximum depth of a text from a client or a file.
    package static let maxDepth = 128
    /// The maximum depth of a text from the server of an app. View trees of 300 levels are ordinary.
    package static let maxResultDepth = 512
    /// The maximum depth of a text from a broker, which wraps the results of apps.
    package static let maxBrokerDepth = 544

    /// Parses one JSON text.
    ///
    /// - Parameters:
    ///   - bytes: One JSON text without trailing data.
    ///   - maxDepth: The maximum number of arrays and objects inside each other.
    /// - Throws: `JSONError`.
    package init(parsing bytes: some Sequence<UInt8>, maxDepth: Int = JSON.maxDepth) throws(JSONError) {
        let parsed = bytes.withContiguousStorageIfAvailable { Result(parsing: $0, maxDepth) }
        self = try (parsed ?? Array(bytes).withUnsafeBufferPointer { Result(parsing: $0, maxDepth) }).get()
    }

    /// - Throws: `JSONError`.
    package init(parsing text: String) throws(JSONError) { try self.init(parsing: text.utf8) }

    /// The JSON text on one line, without optional spaces.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        append(to: &bytes)
        return bytes
    }

    package var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Appends the JSON text to a buffer.
    package func append(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes += "null".utf8
        case .bool(let value): bytes += (value ? "true" : "false").utf8
        case .number(let number): bytes += number.text.utf8
        case .string(let text): Self.append(text, to: &bytes)
        case .array(let elements):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                element.append(to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let object):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in object.members.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                Self.append(member.name, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                member.value.append(to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    /// Appends a string. Only quotes, backslashes and control characters must be escaped (section 7).
    private static func append(_ text: String, to bytes: inout [UInt8]) {
        var text = text
        bytes.append(UInt8(ascii: "\""))
        text.withUTF8 { utf8 in
            var start = 0
            for (index, byte) in utf8.enumerated() where byte < 0x20 || byte == 0x22 || byte == 0x5C {
                bytes += UnsafeBufferPointer(rebasing: utf8[start..<index])
                bytes += escape(byte)
                start = index + 1
            }
            bytes += UnsafeBufferPointer(rebasing: utf8[start...])
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static func escape(_ byte: UInt8) -> [UInt8] {
        switch byte {
        case 0x22: Array("\\\"".utf8)
        case 0x5C: Array("\\\\".utf8)
        case 0x0A: Array("\\n".utf8)
        case 0x0D: Array("\\r".utf8)
        case 0x09: Array("\\t".utf8)
        default: Array((byte < 0x10 ? "\\u000" : "\\u00").utf8) + Array(String(byte, radix: 16).utf8)
        }
    }
}

extension Result where Success == JSON, Failure == JSONError {
    fileprivate init(parsing bytes: UnsafeBufferPointer<UInt8>, _ maxDepth: Int) {
        var parser = JSONParser(bytes, maxDepth: maxDepth)
        do throws(JSONError) { self = .success(try parser.parse()) } catch { self = .failure(error) }
    }
}

extension JSON {
    /// The size in bytes from which parsing moves to another thread. Each megabyte takes several milliseconds.
    private static let inlineParseLimit = 64 * 1_024

    /// Parses a text of any size without blocking the thread that the task prefers.
    ///
    /// - Throws: `JSONError`.
    package static func parse(
        _ bytes: some Collection<UInt8> & Sendable,
        maxDepth: Int = JSON.maxDepth
    ) async throws(JSONError) -> JSON {
        try await offloaded(bytes.count) { () throws(JSONError) in try JSON(parsing: bytes, maxDepth: maxDepth) }
    }

    /// Parses the text of a server with repairs, and applies a change to the value on the same thread.
    package static func repair<Value: Sendable>(
        _ bytes: ArraySlice<UInt8>,
        _ change: @escaping @Sendable (RepairedJSON) -> Value
    ) async throws(JSONError) -> Value {
        try await offloaded(bytes.count) { () throws(JSONError) in change(try RepairedJSON(bytes)) }
    }

    /// Runs a parser, for a large text on another thread.
    private static func offloaded<Value: Sendable>(
        _ count: Int,
        _ parse: @escaping @Sendable () throws(JSONError) -> Value
    ) async throws(JSONError) -> Value {
        guard count > inlineParseLimit else { return try parse() }
        // A separate task is needed: `withTaskExecutorPreference` does not switch threads when an actor's turn came
        // through the task executor (Swift 6.3). That thread is an event loop's.
        return try await withTaskGroup(of: Result<Value, JSONError>.self) { group in
            group.addTask(executorPreference: globalConcurrentExecutor) {
                Result { () throws(JSONError) in try parse() }
            }
            // The group has one task.
            var parsed = Result<Value, JSONError>.failure(JSONError(reason: .unexpectedEnd, offset: 0))
            for await result in group { parsed = result }
            return parsed
        }.get()
    }
}

/// The reason why a text was rejected as JSON.
package struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Reason: String, Sendable {
        case unexpected = "unexpected character"
        case unexpectedEnd = "unexpected end"
        case tooDeep = "arrays and objects are nested too deep"
        case duplicateName = "duplicate name in an object"
        case invalidUTF8 = "a string is not valid UTF-8"
    }

    package let reason: Reason
    /// The position of the error in bytes, from 0.
    package let offset: Int

    package init(reason: Reason, offset: Int) {
        self.reason = reason
        self.offset = offset
    }

    package var description: String { "this is not JSON: \(reason.rawValue), at byte \(offset)" }
}
