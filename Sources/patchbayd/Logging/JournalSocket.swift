import SystemIO

/// Sends log entries with fields to systemd's journal (the native protocol of systemd-journald(8)): one datagram for each
/// entry.
struct JournalSocket: Sendable {
    static let standardPath = "/run/systemd/journal/socket"
    /// The maximum size of a datagram in bytes. Longer entries go to standard error.
    private static let limit = 64 << 10

    private let socket: DatagramSocket

    init?(path: String = standardPath) {
        guard let socket = DatagramSocket(to: path) else { return nil }
        self.socket = socket
    }

    /// True if systemd connected a descriptor with the journal: `$JOURNAL_STREAM` has its device and inode
    /// (systemd.exec(5)).
    static func isJournal(_ descriptor: CInt, _ environment: [String: String]) -> Bool {
        guard let stream = environment["JOURNAL_STREAM"], let file = FileStatus(of: descriptor) else { return false }
        return stream == "\(file.device):\(file.inode)"
    }

    /// Sends an entry without waiting.
    ///
    /// - Returns: False if the journal does not accept the entry, for example because it restarts.
    func send(_ line: LogLine, priority: Int) -> Bool {
        let bytes = Self.datagram(line, priority: priority)
        return bytes.count <= Self.limit && socket.send(bytes, waits: false)
    }

    /// Encodes an entry. Each field of the entry becomes `PATCHBAY_NAME`.
    static func datagram(_ line: LogLine, priority: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        append("MESSAGE", line.text, to: &bytes)
        append("PRIORITY", "\(priority)", to: &bytes)
        append("SYSLOG_IDENTIFIER", "patchbayd", to: &bytes)
        append("PATCHBAY_EVENT", line.message, to: &bytes)
        for field in line.fields { append("PATCHBAY_\(name(field.name))", field.value, to: &bytes) }
        return bytes
    }

    /// Appends `NAME=value`. A value with a line break gets the binary form: the name, the length as 64 bits in
    /// little-endian order, and the value.
    private static func append(_ name: String, _ value: String, to bytes: inout [UInt8]) {
        bytes += name.utf8
        if value.utf8.contains(UInt8(ascii: "\n")) {
            bytes.append(UInt8(ascii: "\n"))
            withUnsafeBytes(of: UInt64(value.utf8.count).littleEndian) { bytes += $0 }
        } else {
            bytes.append(UInt8(ascii: "="))
        }
        bytes += value.utf8
        bytes.append(UInt8(ascii: "\n"))
    }

    /// The journal accepts capitals, digits and underscores, and at most 64 characters.
    private static func name(_ name: String) -> String {
        let text = name.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" }
        return String(text.prefix(55))
    }
}
