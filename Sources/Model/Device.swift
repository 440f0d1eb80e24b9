package import FoundationEssentials

/// A phone that usbmuxd reports.
///
/// A device is identified by its UDID and transport. usbmuxd's DeviceID is not used: it starts again at 1 when usbmuxd
/// restarts, and can then denote another phone.
package struct Device: Hashable, Sendable, Codable {
    /// The transport between usbmuxd and the phone.
    package enum Transport: String, Hashable, Sendable, Codable {
        case usb
        case network
    }

    package let udid: UDID
    package let transport: Transport
    /// The USB product ID from the phone's descriptor. Nil for network devices.
    package let productID: Int?
    /// The USB bus and port as usbmuxd numbers them. Nil for network devices.
    package let locationID: Int?
    /// The time when Patchbay first saw the current attachment.
    package let attachedAt: Date
    /// The name that the phone reports, such as "Anna’s iPhone". Nil until the phone reports one.
    package var name: SanitizedText?
    /// The model that the phone reports, such as "iPhone15,3".
    package var productType: SanitizedText?
    /// The version of the system that the phone reports, such as "17.5".
    package var productVersion: SanitizedText?
    /// An owner's label and note of the phone; nil without one.
    package var label: SanitizedText?
    package var note: SanitizedText?
    /// Every way to the phone in the team, the best one first. Nil without a team.
    package var routes: [DeviceRoute]?

    package init(udid: UDID, transport: Transport, productID: Int? = nil, locationID: Int? = nil, attachedAt: Date) {
        self.udid = udid
        self.transport = transport
        self.productID = productID
        self.locationID = locationID
        self.attachedAt = attachedAt
    }
}

/// A host of the team to which a phone is attached.
package struct DeviceRoute: Hashable, Sendable, Codable {
    package let host: HostStatus
    package let transport: Device.Transport

    package init(host: HostStatus, transport: Device.Transport) {
        self.host = host
        self.transport = transport
    }
}

extension Device: Identifiable {
    /// The identity of one attachment. A replugged phone has another `attachedAt`.
    package struct ID: Hashable, Sendable {
        package let udid: UDID
        package let transport: Transport
        package let attachedAt: Date
    }

    package var id: ID { ID(udid: udid, transport: transport, attachedAt: attachedAt) }
}

/// The identity of a phone: 40 hexadecimal digits, or 8 and 16 digits with a hyphen on models since 2018.
///
/// usbmuxd omits the hyphen when it reads the USB descriptor, and tools use different case. The initializer normalizes
/// every form, so equal UDIDs denote the same phone.
package struct UDID: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The normal form, as Apple's tools print it: 24 digits in upper case with a hyphen, 40 digits in lower case.
    package let text: String

    /// Parses a UDID in any spelling. Returns nil for other text.
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
