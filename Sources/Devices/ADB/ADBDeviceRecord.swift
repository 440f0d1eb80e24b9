package import Model

/// The state of a phone in the adb server's list.
package enum ADBState: Hashable, Sendable {
    /// The phone accepts requests. adb's word is `device`.
    case ready
    /// The phone does not answer, or is no longer there.
    case offline
    /// The phone has not allowed this machine.
    case unauthorized
    /// The phone is being asked, or the connection is being made.
    case authorizing
    case connecting
    /// The server may not open the phone's USB device.
    case noPermissions
    /// Any other state, such as `recovery` or `bootloader`, in which no app runs.
    case other(SanitizedText)

    init(_ text: some StringProtocol) {
        switch text {
        case "device": self = .ready
        case "offline": self = .offline
        case "unauthorized": self = .unauthorized
        case "authorizing": self = .authorizing
        case "connecting": self = .connecting
        case _ where text.hasPrefix("no permissions"): self = .noPermissions
        default: self = .other(SanitizedText(text))
        }
    }
}

/// One line of the adb server's list of devices.
package struct ADBDeviceRecord: Hashable, Sendable {
    package let transportID: ADBTransportID
    /// The name of the attachment: the serial in the USB descriptor, `HOST:PORT`, or `emulator-PORT`. It does not name
    /// the phone, because another phone may have it later.
    package let serial: SanitizedText
    package let state: ADBState
    /// True if the phone is on a cable.
    package let isOnCable: Bool
    /// The phone's model with underscores, such as `Pixel_8`; nil before the phone accepts requests.
    package let model: SanitizedText?

    /// The number of records that are read from a list. A text of 65,535 bytes has room for more than a thousand.
    static let limit = 256
    /// The longest serial that is kept. mDNS allows names of 253 bytes.
    private static let serialLimit = 255

    /// Reads a list. Ignores lines that are damaged, that repeat a transport, and those after the limit.
    package static func list(_ text: [UInt8]) -> [ADBDeviceRecord] {
        var records: [ADBDeviceRecord] = []
        var known: Set<ADBTransportID> = []
        for line in text.split(separator: UInt8(ascii: "\n")) where records.count < limit {
            guard let record = ADBDeviceRecord(line: String(decoding: line, as: UTF8.self)),
                known.insert(record.transportID).inserted
            else { continue }
            records.append(record)
        }
        return records
    }

    /// Reads `SERIAL STATE [usb:PATH] [KEY:VALUE …] transport_id:N`. Ignores unknown keys.
    ///
    /// The state may contain spaces, so the values are read from the right. Returns nil without a serial, a state or a
    /// transport.
    init?(line: String) {
        var words = line.split(separator: " ")[...]
        var values: [Substring: Substring] = [:]
        while let word = words.last, let value = Self.value(in: word) {
            values[value.key] = value.text
            words.removeLast()
        }
        // adb's words for a phone without a serial have spaces too.
        let count = line.hasPrefix("(no serial number)") ? 3 : 1
        guard words.count > count, let transport = values["transport_id"].flatMap({ ADBTransportID($0) }) else {
            return nil
        }
        transportID = transport
        serial = SanitizedText(words.prefix(count).joined(separator: " "), limit: Self.serialLimit)
        state = ADBState(words.dropFirst(count).joined(separator: " "))
        isOnCable = values["usb"] != nil
        model = values["model"].map { SanitizedText($0) }
    }

    private static func value(in word: Substring) -> (key: Substring, text: Substring)? {
        guard let colon = word.firstIndex(of: ":"), colon > word.startIndex else { return nil }
        let key = word[..<colon]
        guard key.utf8.allSatisfy({ (0x61...0x7A).contains($0) || $0 == 0x5F }) else { return nil }
        return (key, word[word.index(after: colon)...])
    }
}
