import Glibc

/// Reads the bytes of a line. A phone may log ten thousand lines a second.
struct LogCursor {
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

/// Splits a log into lines. A line that is too long is left out, or cut, and costs no memory.
struct LogLineDecoder: Sendable {
    /// The longest line in bytes. The log daemon cuts a message at about 4,000.
    static let limit = 8 << 10

    /// The size in bytes to which longer lines are cut; nil if they are left out.
    private let cut: Int?
    private var line: [UInt8] = []
    private var isTooLong = false

    init(cut: Int? = nil) { self.cut = cut }

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
        if let cut { return line += part.prefix(max(0, cut - line.count)) }
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
