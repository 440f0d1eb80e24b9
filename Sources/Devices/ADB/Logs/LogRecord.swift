import Model

/// A line of `logcat -v threadtime -v uid`: `11-26 10:00:00.000 10234  1234  1250 I AppReveal: text`.
///
/// The log daemon of the phone takes user and process from the kernel (SO_PEERCRED), so an app cannot write a line as
/// another one. A line break in a text begins another line with the same values.
struct LogRecord: Hashable, Sendable {
    let processID: UInt32
    let threadID: UInt32
    let bytes: [UInt8]
    let time: Range<Int>
    let user: Range<Int>
    let level: Range<Int>
    let tag: Range<Int>
    let text: Range<Int>

    private static let colon = Array(": ".utf8)

    /// Returns nil for a line without these values, such as `--------- beginning of main`.
    init?(_ bytes: [UInt8]) {
        typealias Values = (UInt32, UInt32, time: Range<Int>, user: Range<Int>, Range<Int>, Range<Int>, Range<Int>)
        let values = bytes.withUnsafeBufferPointer { bytes -> Values? in
            var cursor = LogCursor(bytes)
            guard let date = cursor.word(), Self.isTime(bytes[date], "dd-dd"),
                let time = cursor.word(), Self.isTime(bytes[time], "dd:dd:dd.ddd"),
                time.lowerBound == date.upperBound + 1,
                let user = cursor.word(), let process = cursor.word().flatMap(cursor.number),
                let thread = cursor.word().flatMap(cursor.number), let level = cursor.word(), level.count == 1,
                let tag = cursor.word(), let colon = cursor.find(Self.colon, from: tag.lowerBound)
            else { return nil }
            let dateAndTime = date.lowerBound..<time.upperBound
            return (
                process, thread, dateAndTime, user, level, tag.lowerBound..<colon,
                colon + Self.colon.count..<bytes.count
            )
        }
        guard let values else { return nil }
        (processID, threadID, time, user, level, tag, text) = values
        self.bytes = bytes
    }

    /// Returns whether a word has this form, in which `d` is a digit. The time is part of a command for the phone.
    private static func isTime(_ word: Slice<UnsafeBufferPointer<UInt8>>, _ form: StaticString) -> Bool {
        form.withUTF8Buffer { form in
            word.count == form.count
                && zip(word, form).allSatisfy { byte, wanted in
                    wanted == UInt8(ascii: "d") ? (0x30...0x39).contains(byte) : byte == wanted
                }
        }
    }

    /// The number of the user; nil for the name of a system user, such as root.
    var userID: UInt32? { bytes.withUnsafeBufferPointer { LogCursor($0).number(user) } }

    /// The line with its texts. Bytes that are not UTF-8 become U+FFFD.
    var line: RawPhoneLogLine {
        func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }
        return RawPhoneLogLine(
            time: text(time),
            user: text(user),
            processID: processID,
            threadID: threadID,
            level: text(level),
            tag: String(text(tag).reversed().drop { $0 == " " }.reversed()),
            text: text(self.text)
        )
    }
}
