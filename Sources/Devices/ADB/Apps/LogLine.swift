import Model

/// A line of `logcat -v threadtime -v uid`: `11-26 10:00:00.000 10234  1234  1234 I AppReveal: text`.
///
/// The log daemon of the phone takes user and process from the kernel (SO_PEERCRED), so an app cannot write a line as
/// another one. A line break in a text begins another line with the same values.
struct LogLine: Hashable, Sendable {
    /// The user of the app. System users with a short name, such as root, have no number, and their lines are ignored.
    let user: UInt32
    let processID: UInt32
    let tag: ArraySlice<UInt8>
    let text: ArraySlice<UInt8>

    /// Returns nil for a line without these values, such as `--------- beginning of main`.
    init?(_ line: [UInt8]) {
        var rest = line[...]
        guard let date = rest.nextWord(), date.contains(UInt8(ascii: "-")),
            let time = rest.nextWord(), time.contains(UInt8(ascii: ":")),
            let user = rest.nextWord().flatMap(Self.number), let process = rest.nextWord().flatMap(Self.number),
            rest.nextWord().flatMap(Self.number) != nil, rest.nextWord()?.count == 1
        else { return nil }
        let blank = UInt8(ascii: " ")
        guard
            let colon = rest.indices.dropLast().first(where: { rest[$0] == UInt8(ascii: ":") && rest[$0 + 1] == blank })
        else { return nil }
        (self.user, processID) = (user, process)
        var name = rest[..<colon]
        tag = name.nextWord() ?? []
        text = rest[(colon + 2)...]
    }

    /// The URL with a secret in the line; nil if there is none.
    var announcement: AppAnnouncement? {
        if tag.elementsEqual("AppReveal".utf8) { return session }
        if tag.elementsEqual("flutter".utf8) { return vmService }
        return nil
    }

    /// The length of AppReveal's tokens: 32 bytes in hexadecimal.
    private static let tokenLength = 64
    private static let parameter = Array("/?appreveal_session_token=".utf8)
    private static let isListening = Array("The Dart VM service is listening on ".utf8)
    private static let hosts = ["127.0.0.1:", "localhost:", "[::1]:"].map { Array($0.utf8) }

    /// AppReveal logs `Session URL: http://127.0.0.1:PORT/?appreveal_session_token=HEX` at each launch.
    private var session: AppAnnouncement? {
        guard let (port, path) = url, path.starts(with: Self.parameter) else { return nil }
        let token = path.dropFirst(Self.parameter.count)
        guard token.count == Self.tokenLength, token.allSatisfy(\.isHexadecimalDigit) else { return nil }
        let secret = String(decoding: token, as: UTF8.self)
        return AppAnnouncement(kind: .appreveal, port: port, secret: secret, processID: processID)
    }

    /// Flutter logs `The Dart VM service is listening on http://127.0.0.1:PORT/CODE=/`.
    private var vmService: AppAnnouncement? {
        guard text.starts(with: Self.isListening), let (port, path) = url,
            let code = DartAuthCode(String(decoding: path.dropFirst(), as: UTF8.self))
        else { return nil }
        return AppAnnouncement(kind: .dartVM, port: port, secret: code.reveal(), processID: processID)
    }

    /// The port of the first URL, if that is on the phone's loopback, and its path.
    private var url: (port: UInt16, path: ArraySlice<UInt8>)? {
        let scheme = "http://".utf8
        guard let start = text.indices.first(where: { text[$0...].starts(with: scheme) }) else { return nil }
        let rest = text[(start + scheme.count)...]
        guard let host = Self.hosts.first(where: { rest.starts(with: $0) }) else { return nil }
        let authority = rest.dropFirst(host.count)
        guard let slash = authority.firstIndex(of: UInt8(ascii: "/")), let number = Self.number(authority[..<slash]),
            let port = UInt16(exactly: number), port > 0
        else { return nil }
        return (port, authority[slash...].prefix { $0 > 0x20 && $0 < 0x7F })
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> UInt32? {
        guard (1...10).contains(digits.count) else { return nil }
        var number: UInt64 = 0
        for byte in digits {
            guard (0x30...0x39).contains(byte) else { return nil }
            number = number * 10 + UInt64(byte - 0x30)
        }
        return UInt32(exactly: number)
    }
}

extension ArraySlice<UInt8> {
    /// Removes the next word and the spaces before it. Returns nil at the end.
    fileprivate mutating func nextWord() -> ArraySlice<UInt8>? {
        let word = drop { $0 == 0x20 }.prefix { $0 != 0x20 }
        self = self[word.endIndex...]
        return word.isEmpty ? nil : word
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
        var rest = bytes[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            append(rest[..<end])
            if !isTooLong { lines.append(line) }
            (line, isTooLong) = ([], false)
            rest = rest[(end + 1)...]
        }
        append(rest)
        return lines
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
