import Devices
import FoundationEssentials
import Model

/// What the facade says, asked or unasked, in either of usbmuxd's dialects.
enum UsbmuxServerResponse: Hashable, Sendable {
    /// How a client talks: until its first property list as the first usbmuxd did.
    enum Dialect: Hashable, Sendable {
        case binary
        case propertyList
    }

    case result(UsbmuxResult)
    case devices([NumberedDevice])
    case listeners([UInt32: ListenerInfo])
    case change(DeviceChange)
    /// What usbmuxd answered, as it came.
    case passed([UInt8])

    /// The message as it travels. The tag is that of the request, or 0 for what was not asked; throws what the property
    /// list encoder throws.
    func encoded(tag: UInt32, in dialect: Dialect) throws -> [UInt8] {
        let list: any Encodable
        switch (self, dialect) {
        case (.result(let result), .binary): return UsbmuxMessage(tag: tag, body: .result(result)).encoded
        case (.change(.attached(let phone)), .binary): return Self.frame(4, tag, Self.record(of: phone))
        case (.change(.detached(let phone)), .binary):
            return Self.frame(5, tag, UsbmuxHeader.bytes(of: phone.deviceID))
        // The rest is asked for in property lists only.
        case (.passed(let bytes), _): return UsbmuxMessage(tag: tag, body: .propertyList(bytes)).encoded
        case (.result(let result), .propertyList): list = ResultPlist(result)
        case (.change(.attached(let phone)), .propertyList): list = AttachedPlist(phone)
        case (.change(.detached(let phone)), .propertyList): list = DetachedPlist(phone)
        case (.devices(let phones), _): list = DeviceListPlist(phones)
        case (.listeners(let listeners), _): list = ListenerListPlist(listeners)
        }
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .xml
        return UsbmuxMessage(tag: tag, body: .propertyList(Array(try encoder.encode(list)))).encoded
    }

    private static func frame(_ kind: UInt32, _ tag: UInt32, _ body: [UInt8]) -> [UInt8] {
        let length = UInt32(UsbmuxHeader.size + body.count)
        return UsbmuxHeader(length: length, version: 0, kind: kind, tag: tag).encoded + body
    }

    /// struct usbmuxd_device_record: number, product id (16 bits), 256 bytes for the UDID, 2 of padding, location.
    private static func record(of phone: NumberedDevice) -> [UInt8] {
        let serial = Array(phone.device.udid.text.utf8)
        let product = UsbmuxHeader.bytes(of: UInt32(truncatingIfNeeded: phone.device.productID ?? 0)).prefix(2)
        return UsbmuxHeader.bytes(of: phone.deviceID) + product + serial
            + [UInt8](repeating: 0, count: 256 - serial.count + 2)
            + UsbmuxHeader.bytes(of: UInt32(truncatingIfNeeded: phone.device.locationID ?? 0))
    }
}
