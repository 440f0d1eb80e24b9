import Glibc
import Model

/// A line of `logcat -v threadtime -v uid`: `11-26 10:00:00.000 10234  1234  1234 I AppReveal: text`.
///
/// The log daemon of the phone takes user and process from the kernel (SO_PEERCRED), so an app cannot write a line as
/// another one. A line break in a text begins another line with the same values.
struct LogLine: Hashable, Sendable {
    /// The user of the app. System users with a short name, such as root, have no number, and their lines are ignored.
    let user: UInt32
    let processID: UInt32
    private let line: [UInt8]
    private let tagRange: Range<Int>
    private let textRange: Range<Int>

    var tag: ArraySlice<UInt8> { line[tagRange] }
    var text: ArraySlice<UInt8> { line[textRange] }

    /// Returns nil for a line without these values, such as `--------- beginning of main`.
    init?(_ line: [UInt8]) {
        let values = line.withUnsafeBufferPointer { bytes -> (UInt32, UInt32, Range<Int>, Range<Int>)? in
            var cursor = Cursor(bytes)
            guard let date = cursor.word(), bytes[date].contains(UInt8(ascii: "-")),
                let time = cursor.word(), bytes[time].contains(UInt8(ascii: ":")),
                let user = cursor.word().flatMap(cursor.number), let process = cursor.word().flatMap(cursor.number),
                cursor.word().flatMap(cursor.number) != nil, cursor.word()?.count == 1,
                let tag = cursor.word(), let colon = cursor.find(Self.colon, from: tag.lowerBound)
            else { return nil }
            return (user, process, tag.clamped(to: 0..<colon), colon + Self.colon.count..<bytes.count)
        }
        guard let values else { return nil }
        (user, processID, tagRange, textRange) = values
        self.line = line
    }

    /// The URL with a secret in the line; nil if there is none.
    var announcement: AppAnnouncement? {
        line.withUnsafeBufferPointer { bytes in
            if bytes[tagRange].elementsEqual(Self.appReveal) { return session(in: Cursor(bytes)) }
            if bytes[tagRange].elementsEqual(Self.flutter) { return vmService(in: Cursor(bytes)) }
            return nil
        }
    }

    /// The length of AppReveal's tokens: 32 bytes in hexadecimal.
    private static let tokenLength = 64
    private static let colon = Array(": ".utf8)
    private static let appReveal = Array("AppReveal".utf8)
    private static let flutter = Array("flutter".utf8)
    private static let scheme = Array("http://".utf8)
    private static let parameter = Array("/?appreveal_session_token=".utf8)
    private static let isListening = Array("The Dart VM service is listening on ".utf8)
    private static let hosts = ["127.0.0.1:", "localhost:", "[::1]:"].map { Array($0.utf8) }

    /// AppReveal logs `Session URL: http://127.0.0.1:PORT/?appreveal_session_token=HEX` at each launch.
    private func session(in cursor: Cursor) -> AppAnnouncement? {
        guard let (port, path) = url(in: cursor), cursor.has(Self.parameter, at: path.lowerBound) else { return nil }
        let token = line[path].dropFirst(Self.parameter.count)
        guard token.count == Self.tokenLength, token.allSatisfy(\.isHexadecimalDigit) else { return nil }
        let secret = String(decoding: token, as: UTF8.self)
        return AppAnnouncement(kind: .appreveal, port: port, secret: secret, processID: processID)
    }

    /// Flutter logs `The Dart VM service is listening on http://127.0.0.1:PORT/CODE=/`.
    private func vmService(in cursor: Cursor) -> AppAnnouncement? {
        guard cursor.has(Self.isListening, at: textRange.lowerBound), let (port, path) = url(in: cursor),
            let code = DartAuthCode(String(decoding: line[path].dropFirst(), as: UTF8.self))
        else { return nil }
        return AppAnnouncement(kind: .dartVM, port: port, secret: code.reveal(), processID: processID)
    }

    /// The port of the first URL, if that is on the phone's loopback, and its path.
    private func url(in cursor: Cursor) -> (port: UInt16, path: Range<Int>)? {
        guard let start = cursor.find(Self.scheme, from: textRange.lowerBound).map({ $0 + Self.scheme.count }),
            let host = Self.hosts.first(where: { cursor.has($0, at: start) }),
            let slash = line[(start + host.count)...].firstIndex(of: UInt8(ascii: "/")),
            let port = cursor.number(start + host.count..<slash).flatMap({ UInt16(exactly: $0) }), port > 0
        else { return nil }
        let end = line[slash...].firstIndex { $0 <= 0x20 || $0 >= 0x7F } ?? line.endIndex
        return (port, slash..<end)
    }
}

/// Reads the bytes of a line. A phone may log ten thousand lines a second.
private struct Cursor {
    private let bytes: UnsafeBufferPointer<UInt8>
    private var index = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    /// Returns the next word, and nil at the end.
    mutating func word() -> Range<Int>? {
        while index < bytes.count, bytes[index] == 0x20 { index += 1 }
        let start = index
        while index < bytes.count, bytes[index] != 0x20 { index += 1 }
        return start < index ? start..<index : nil
    }

    func number(_ digits: Range<Int>) -> UInt32? {
        guard (1...10).contains(digits.count) else { return nil }
        var number: UInt64 = 0
        for index in digits {
            guard (0x30...0x39).contains(bytes[index]) else { return nil }
            number = number * 10 + UInt64(bytes[index] - 0x30)
        }
        return UInt32(exactly: number)
    }

    func has(_ text: [UInt8], at start: Int) -> Bool {
        guard let own = bytes.baseAddress, start + text.count <= bytes.count else { return false }
        return memcmp(own + start, text, text.count) == 0
    }

    /// Returns the place of the first occurrence of a text.
    func find(_ text: [UInt8], from start: Int) -> Int? {
        guard let own = bytes.baseAddress, let first = text.first else { return nil }
        var start = start
        while start + text.count <= bytes.count,
            let found = memchr(own + start, CInt(first), bytes.count - start)
        {
            start = UnsafeRawPointer(found) - UnsafeRawPointer(own)
            if has(text, at: start) { return start }
            start += 1
        }
        return nil
    }
}

extension UInt8 {
    fileprivate var isHexadecimalDigit: Bool {
        isLetterOrDigit && (self <= 0x39 || (0x61...0x66).contains(self | 0x20))
    }
}

/// Splits a log into lines. A line that is too long is left out, and costs no memory.
struct LogLineDecoder: Sendable {
    /// The longest line in bytes. The log daemon cuts a message at about 4,000.
    static let limit = 8 << 10

    private var line: [UInt8] = []
    private var isTooLong = false

    /// Reads received bytes. Returns the lines that end in them, without their line breaks.
    mutating func read(_ bytes: [UInt8]) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var start = 0
        while let end = Self.lineEnd(in: bytes, from: start) {
            append(bytes[start..<end])
            if !isTooLong { lines.append(line) }
            (line, isTooLong, start) = ([], false, end + 1)
        }
        append(bytes[start...])
        return lines
    }

    private static func lineEnd(in bytes: [UInt8], from start: Int) -> Int? {
        bytes.withUnsafeBytes { bytes in
            guard let own = bytes.baseAddress, start < bytes.count else { return nil }
            return memchr(own + start, 0x0A, bytes.count - start).map { UnsafeRawPointer($0) - own }
        }
    }

    private mutating func append(_ part: ArraySlice<UInt8>) {
        isTooLong = isTooLong || line.count + part.count > Self.limit
        if isTooLong { line = [] } else { line += part }
    }
}

/// The bytes of a log that may be read: a rate, after a first amount.
///
/// An app can write tens of thousands of lines a second. The phone drops what is not read in time.
struct LogBudget: Sendable {
    /// Bytes a second.
    static let rate = 2 << 20
    /// The bytes that may be read at once. The log buffers of a phone have up to 5 MiB, of which few lines match.
    static let burst = 8 << 20

    private var used = 0
    private var since = Duration.zero

    /// Counts read bytes. Returns the time to wait before the next ones.
    mutating func pause(after count: Int, at now: Duration) -> Duration {
        let elapsed = Int((now - since) / .milliseconds(1))
        used = max(0, used - elapsed * (Self.rate / 1_000)) + count
        since = now
        guard used > Self.burst else { return .zero }
        return .milliseconds((used - Self.burst) * 1_000 / Self.rate + 1)
    }
}
