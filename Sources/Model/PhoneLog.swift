/// A line of a phone's log as the phone printed it. It may contain secrets and terminal escapes.
package struct RawPhoneLogLine: Hashable, Sendable {
    /// The phone's local time, without the year: `11-26 10:00:00.000`.
    package let time: String
    /// The user that wrote the line: a number, or the name of a system user such as `root`.
    package let user: String
    package let processID: UInt32
    package let threadID: UInt32
    /// One letter: V, D, I, W, E or F.
    package let level: String
    package let tag: String
    package let text: String

    package init(
        time: String,
        user: String,
        processID: UInt32,
        threadID: UInt32,
        level: String,
        tag: String,
        text: String
    ) {
        (self.time, self.user, self.processID, self.threadID) = (time, user, processID, threadID)
        (self.level, self.tag, self.text) = (level, tag, text)
    }

    /// The maximum size of a tag, and of a text without secrets, in bytes.
    package static let tagLimit = 128
    package static let textLimit = 8 << 10
}

/// A line of a phone's log without secrets, which is safe to print.
package struct PhoneLogLine: Hashable, Sendable, Codable {
    package let time: SanitizedText
    package let user: SanitizedText
    package let processID: UInt32
    package let threadID: UInt32
    package let level: SanitizedText
    package let tag: SanitizedText
    package let text: SanitizedText

    private enum CodingKeys: String, CodingKey {
        case time, level, tag, text
        case user = "uid"
        case processID = "pid"
        case threadID = "tid"
    }

    /// - Parameters:
    ///   - line: The line of the phone.
    ///   - redactor: Removes secrets.
    package init(_ line: RawPhoneLogLine, by redactor: SecretRedactor) {
        time = SanitizedText(line.time)
        user = SanitizedText(line.user)
        (processID, threadID) = (line.processID, line.threadID)
        level = SanitizedText(line.level)
        tag = SanitizedText(redactor.text(line.tag), limit: RawPhoneLogLine.tagLimit)
        // The traces of exceptions are indented by tabs.
        let text = redactor.text(line.text, limit: RawPhoneLogLine.textLimit).replacing("\t", with: "    ")
        self.text = SanitizedText(text, limit: RawPhoneLogLine.textLimit)
    }

    /// The line for people: `11-26 10:00:00.000  4711 I AppReveal: text`.
    package var description: String {
        let process = String(processID)
        let padding = String(repeating: " ", count: max(0, 5 - process.utf8.count))
        return "\(time) \(padding)\(process) \(level) \(tag): \(text)"
    }
}

/// An event for the reader of a phone's log.
package enum PhoneLogEvent<Line: Sendable>: Sendable {
    case line(Line)
    /// The number of lines that were dropped here, because the reader is slower than the phone.
    case lost(Int)
    /// A change of the source in words, such as that the phone was unplugged.
    case note(String)
}

extension PhoneLogEvent: Equatable where Line: Equatable {}

/// Reads the logs of phones.
package protocol PhoneLogSource: Sendable {
    /// Returns the user that listens on a TCP port of a phone; nil if there is none, or if there are several.
    ///
    /// - Throws: `DialError`, `CancellationError`.
    func user(ofPort port: UInt16, on udid: UDID) async throws -> UInt32?

    /// Returns the user of an installed package; nil if it is not installed.
    ///
    /// - Throws: `DialError`, `CancellationError`.
    func user(ofPackage package: SanitizedText, on udid: UDID) async throws -> UInt32?

    /// Returns the only package of a user; nil if there is none, or if several share the user (`sharedUserId`).
    ///
    /// - Throws: `DialError`, `CancellationError`.
    func package(ofUser user: UInt32, on udid: UDID) async throws -> SanitizedText?

    /// Reads the newest lines of one user, or of all users for nil.
    ///
    /// - Throws: `DialError`, `CancellationError`.
    func past(of udid: UDID, user: UInt32?, lines: Int) async throws -> PhoneLogPast

    /// Reads new lines until cancelled, also after replugs of the phone.
    ///
    /// - Parameters:
    ///   - udid: The phone.
    ///   - user: The user whose lines are read; nil for all.
    ///   - position: The end of what was read already.
    ///   - receive: Called with the events in order, by one task.
    /// - Throws: `CancellationError`.
    func follow(
        _ udid: UDID,
        user: UInt32?,
        from position: PhoneLogPosition,
        _ receive: @escaping @Sendable ([PhoneLogEvent<RawPhoneLogLine>]) -> Void
    ) async throws
}

/// The newest lines of a log, and the place where they end.
package struct PhoneLogPast: Sendable {
    package let lines: [RawPhoneLogLine]
    package let position: PhoneLogPosition

    package init(lines: [RawPhoneLogLine], position: PhoneLogPosition) {
        (self.lines, self.position) = (lines, position)
    }
}

/// The response of the API with the newest lines of a log.
package struct PhoneLogDocument: Hashable, Sendable, Codable {
    /// The version of the document format.
    package let schema: Int
    package let lines: [PhoneLogLine]

    package init(lines: [PhoneLogLine]) { (schema, self.lines) = (1, lines) }
}
