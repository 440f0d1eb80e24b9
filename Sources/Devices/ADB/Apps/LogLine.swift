import Glibc
import Model

/// A line of an app in a phone's log, which may have a URL with a secret.
struct LogLine: Hashable, Sendable {
    /// The user of the app. System users with a short name, such as root, have no number, and their lines are ignored.
    let user: UInt32
    private let record: LogRecord

    var processID: UInt32 { record.processID }
    var tag: ArraySlice<UInt8> { line[tagRange] }
    var text: ArraySlice<UInt8> { line[textRange] }
    private var line: [UInt8] { record.bytes }
    private var textRange: Range<Int> { record.text }
    /// The first word of the tag.
    private var tagRange: Range<Int> {
        record.tag.lowerBound..<(line[record.tag].firstIndex(of: 0x20) ?? record.tag.upperBound)
    }

    /// Returns nil for a line without these values.
    init?(_ line: [UInt8]) {
        guard let record = LogRecord(line), let user = record.userID else { return nil }
        (self.user, self.record) = (user, record)
    }

    /// The URL with a secret in the line; nil if there is none.
    var announcement: AppAnnouncement? {
        line.withUnsafeBufferPointer { bytes in
            if bytes[tagRange].elementsEqual(Self.appReveal) { return session(in: LogCursor(bytes)) }
            if bytes[tagRange].elementsEqual(Self.flutter) { return vmService(in: LogCursor(bytes)) }
            return nil
        }
    }

    /// The length of AppReveal's tokens: 32 bytes in hexadecimal.
    private static let tokenLength = 64
    private static let appReveal = Array("AppReveal".utf8)
    private static let flutter = Array("flutter".utf8)
    private static let scheme = Array("http://".utf8)
    private static let parameter = Array("/?appreveal_session_token=".utf8)
    private static let isListening = Array("The Dart VM service is listening on ".utf8)
    private static let hosts = ["127.0.0.1:", "localhost:", "[::1]:"].map { Array($0.utf8) }

    /// AppReveal logs `Session URL: http://127.0.0.1:PORT/?appreveal_session_token=HEX` at each launch.
    private func session(in cursor: LogCursor) -> AppAnnouncement? {
        guard let (port, path) = url(in: cursor), cursor.has(Self.parameter, at: path.lowerBound) else { return nil }
        let token = line[path].dropFirst(Self.parameter.count)
        guard token.count == Self.tokenLength, token.allSatisfy(\.isHexadecimalDigit) else { return nil }
        let secret = String(decoding: token, as: UTF8.self)
        return AppAnnouncement(kind: .appreveal, port: port, secret: secret, processID: processID)
    }

    /// Flutter logs `The Dart VM service is listening on http://127.0.0.1:PORT/CODE=/`.
    private func vmService(in cursor: LogCursor) -> AppAnnouncement? {
        guard cursor.has(Self.isListening, at: textRange.lowerBound), let (port, path) = url(in: cursor),
            let code = DartAuthCode(String(decoding: line[path].dropFirst(), as: UTF8.self))
        else { return nil }
        return AppAnnouncement(kind: .dartVM, port: port, secret: code.reveal(), processID: processID)
    }

    /// The port of the first URL, if that is on the phone's loopback, and its path.
    private func url(in cursor: LogCursor) -> (port: UInt16, path: Range<Int>)? {
        guard let start = cursor.find(Self.scheme, from: textRange.lowerBound).map({ $0 + Self.scheme.count }),
            let host = Self.hosts.first(where: { cursor.has($0, at: start) }),
            let slash = line[(start + host.count)...].firstIndex(of: UInt8(ascii: "/")),
            let port = cursor.number(start + host.count..<slash).flatMap({ UInt16(exactly: $0) }), port > 0
        else { return nil }
        let end = line[slash...].firstIndex { $0 <= 0x20 || $0 >= 0x7F } ?? line.endIndex
        return (port, slash..<end)
    }
}

extension UInt8 {
    fileprivate var isHexadecimalDigit: Bool {
        isLetterOrDigit && (self <= 0x39 || (0x61...0x66).contains(self | 0x20))
    }
}
