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
