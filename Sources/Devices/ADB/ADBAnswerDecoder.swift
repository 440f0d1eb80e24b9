package import Model

/// Splits the bytes of an adb server into texts: four hexadecimal digits of a length, and so many bytes.
///
/// A text has at most 65,535 bytes, because the length has four digits. After an error no further text is returned: the
/// boundaries are lost, and the connection must be closed.
package struct ADBTextDecoder: Sendable {
    private static let digits = 4

    private var buffer: [UInt8] = []
    private var error: ADBError?

    package init() {}

    /// The number of bytes that complete the current length or text; at least 1.
    ///
    /// A reader that reads no more than this consumes no byte that follows the text.
    package var bytesNeeded: Int {
        guard error == nil else { return 1 }
        guard let length = Self.length(in: buffer) else { return max(1, Self.digits - buffer.count) }
        return max(1, Self.digits + length - buffer.count)
    }

    package mutating func append(_ bytes: some Collection<UInt8>) {
        if error == nil { buffer += bytes }
    }

    /// Returns the next complete text; nil if bytes are missing.
    package mutating func next() throws(ADBError) -> [UInt8]? {
        if let error { throw error }
        guard buffer.count >= Self.digits else { return nil }
        guard let length = Self.length(in: buffer) else {
            let error = ADBError.malformedAnswer("a length that is not four hexadecimal digits")
            self.error = error
            buffer = []
            throw error
        }
        guard buffer.count >= Self.digits + length else { return nil }
        let text = Array(buffer[Self.digits..<Self.digits + length])
        buffer.removeFirst(Self.digits + length)
        return text
    }

    private static func length(in bytes: [UInt8]) -> Int? {
        guard bytes.count >= digits else { return nil }
        var length = 0
        for byte in bytes.prefix(digits) {
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { return nil }
            length = length << 4 | digit
        }
        return length
    }
}

/// Reads the answer to a request: `OKAY`, or `FAIL` and a text with the reason.
///
/// Data of the request follows `OKAY` on the same connection. The decoder never asks for a byte of it.
package struct ADBAnswerDecoder: Sendable {
    package enum Answer: Hashable, Sendable {
        case okay
        /// The reason in the server's words, in one line.
        case failed(SanitizedText)
    }

    private static let okay = Array("OKAY".utf8)
    private static let fail = Array("FAIL".utf8)
    private static let reasonLimit = 200

    private var status: [UInt8] = []
    private var reason = ADBTextDecoder()

    package init() {}

    /// The number of bytes that complete the current part of the answer; at least 1.
    package var bytesNeeded: Int {
        status.count < Self.okay.count ? Self.okay.count - status.count : status == Self.fail ? reason.bytesNeeded : 1
    }

    package mutating func append(_ bytes: some Collection<UInt8>) {
        let missing = Self.okay.count - status.count
        status += bytes.prefix(missing)
        reason.append(bytes.dropFirst(missing))
    }

    /// Returns the answer; nil if bytes are missing.
    package mutating func next() throws(ADBError) -> Answer? {
        guard status.count == Self.okay.count else { return nil }
        switch status {
        case Self.okay: return .okay
        case Self.fail:
            guard let text = try reason.next() else { return nil }
            let words = String(decoding: text, as: UTF8.self).split(whereSeparator: \.isNewline).joined(separator: " ")
            return .failed(SanitizedText(words, limit: Self.reasonLimit))
        default: throw .malformedAnswer("an answer that begins with neither OKAY nor FAIL")
        }
    }
}
