/// The system of a phone.
package enum Platform: String, Hashable, Sendable, Codable, CaseIterable {
    case ios
    case android

    /// The name for people.
    package var name: String {
        switch self {
        case .ios: "iOS"
        case .android: "Android"
        }
    }
}

/// The identity of a phone, which no other phone has later.
///
/// An iPhone has 40 hexadecimal digits, or 8 and 16 digits with a hyphen on models since 2018. usbmuxd omits the hyphen
/// when it reads the USB descriptor, and tools use different case. The initializer normalizes every form, so equal UDIDs
/// denote the same phone.
///
/// An Android phone has `android-` and its `ro.serialno`. Without the prefix, a phone could take the UDID of an iPhone as
/// its serial, and so get what belongs to the iPhone.
package struct UDID: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The normal form. An iPhone's is that of Apple's tools: 24 digits in upper case with a hyphen, 40 digits in lower
    /// case.
    package let text: String
    package let platform: Platform

    private static let androidPrefix = "android-"
    /// The longest serial. Android's properties had at most 91 bytes before version 8.
    private static let serialLimit = 91

    /// Parses a UDID in any spelling. Returns nil for other text.
    package init?(_ text: some StringProtocol) {
        if text.hasPrefix(Self.androidPrefix) {
            let serial = text.dropFirst(Self.androidPrefix.count)
            guard (1...Self.serialLimit).contains(serial.utf8.count), serial.unicodeScalars.allSatisfy(Self.isAllowed)
            else { return nil }
            self.text = String(text)
            platform = .android
            return
        }
        platform = .ios
        let digits = String(text.filter { $0 != "-" })
        guard digits.utf8.count == digits.count, digits.allSatisfy(\.isHexDigit) else { return nil }
        switch digits.count {
        case 24: self.text = digits.prefix(8).uppercased() + "-" + digits.dropFirst(8).uppercased()
        case 40: self.text = digits.lowercased()
        default: return nil
        }
    }

    /// Makes the UDID of an Android phone. Returns nil for an empty serial.
    ///
    /// Other characters than letters, digits, `.`, `_` and `-` become `_`, so that the UDID needs no quotes anywhere.
    package init?(androidSerial serial: some StringProtocol) {
        var text = String.UnicodeScalarView(Self.androidPrefix.unicodeScalars)
        text += serial.unicodeScalars.prefix(Self.serialLimit).map { Self.isAllowed($0) ? $0 : "_" }
        self.init(String(text))
    }

    private static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", ".", "_", "-": true
        default: false
        }
    }

    package var description: String { text }

    /// The phone's own serial, such as `ro.serialno`: the text without the prefix.
    package var serial: Substring { platform == .android ? text.dropFirst(Self.androidPrefix.count) : text[...] }

    package static func < (one: UDID, other: UDID) -> Bool { one.text < other.text }
}

extension UDID: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let udid = UDID(text) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "\"\(SanitizedText(text))\" is not a UDID; `patchbay devices` lists those it knows"
            )
        }
        self = udid
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
