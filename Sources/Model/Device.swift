package import FoundationEssentials

/// A phone that usbmuxd shows.
///
/// Known by its UDID and the way it is attached, never by usbmuxd's DeviceID: those start again at 1 whenever usbmuxd
/// does, so an old one may name another phone.
package struct Device: Hashable, Sendable, Codable {
    /// How usbmuxd reaches the phone.
    package enum Transport: String, Hashable, Sendable, Codable {
        case usb
        case network
    }

    package let udid: UDID
    package let transport: Transport
    /// USB product id, as the phone's descriptor has it; nil for network devices.
    package let productID: Int?
    /// Bus and port as usbmuxd numbers them; nil for network devices.
    package let locationID: Int?
    /// When Patchbay first saw it in this attachment.
    package let since: Date

    package init(udid: UDID, transport: Transport, productID: Int? = nil, locationID: Int? = nil, since: Date) {
        self.udid = udid
        self.transport = transport
        self.productID = productID
        self.locationID = locationID
        self.since = since
    }
}

/// The identity of a phone: 40 hexadecimal digits, or 8 and 16 of them around a hyphen on models since 2018.
///
/// usbmuxd leaves the hyphen out of what it reads from the USB descriptor and tools disagree about case, so every form is
/// brought to one here and two UDIDs are equal exactly when they name the same phone.
package struct UDID: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The normal form: the 24-digit kind upper case with its hyphen, the 40-digit kind lower case, as Apple's tools print it.
    package let text: String

    /// Returns nil unless the text is a UDID in some spelling.
    package init?(_ text: some StringProtocol) {
        let digits = String(text.filter { $0 != "-" })
        guard digits.utf8.count == digits.count, digits.allSatisfy(\.isHexDigit) else { return nil }
        switch digits.count {
        case 24: self.text = digits.prefix(8).uppercased() + "-" + digits.dropFirst(8).uppercased()
        case 40: self.text = digits.lowercased()
        default: return nil
        }
    }

    package var description: String { text }

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
