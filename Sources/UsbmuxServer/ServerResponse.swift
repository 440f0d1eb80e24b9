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

// The property lists of usbmuxd's client.c, key for key; the members are called what the keys are.

struct ResultPlist: Encodable {
    let messageType = "Result"
    let number: UInt32

    init(_ result: UsbmuxResult) { number = result.code }

    private enum CodingKeys: String, CodingKey {
        case messageType = "MessageType"
        case number = "Number"
    }
}

struct AttachedPlist: Encodable {
    struct Properties: Encodable {
        /// 480 Mbit/s: what usbmuxd says of most phones. Patchbay does not keep what it says of each, and no client acts on it.
        let connectionSpeed = 480_000_000
        let connectionType = "USB"
        let deviceID: UInt32
        let locationID: Int
        let productID: Int
        /// With the hyphen in the form of 24 digits, as usbmuxd sends it since 1.1.1.
        let serialNumber: String

        private enum CodingKeys: String, CodingKey {
            case connectionSpeed = "ConnectionSpeed"
            case connectionType = "ConnectionType"
            case deviceID = "DeviceID"
            case locationID = "LocationID"
            case productID = "ProductID"
            case serialNumber = "SerialNumber"
        }
    }

    let messageType = "Attached"
    let deviceID: UInt32
    let properties: Properties

    init(_ phone: NumberedDevice) {
        deviceID = phone.deviceID
        properties = Properties(
            deviceID: phone.deviceID,
            locationID: phone.device.locationID ?? 0,
            productID: phone.device.productID ?? 0,
            serialNumber: phone.device.udid.text
        )
    }

    private enum CodingKeys: String, CodingKey {
        case messageType = "MessageType"
        case deviceID = "DeviceID"
        case properties = "Properties"
    }
}

struct DetachedPlist: Encodable {
    let messageType = "Detached"
    let deviceID: UInt32

    init(_ phone: NumberedDevice) { deviceID = phone.deviceID }

    private enum CodingKeys: String, CodingKey {
        case messageType = "MessageType"
        case deviceID = "DeviceID"
    }
}

struct DeviceListPlist: Encodable {
    let devices: [AttachedPlist]

    init(_ phones: [NumberedDevice]) { devices = phones.map { AttachedPlist($0) } }

    private enum CodingKeys: String, CodingKey {
        case devices = "DeviceList"
    }
}

struct ListenerListPlist: Encodable {
    struct Listener: Encodable {
        let isBlacklisted = false
        let bundleID: String?
        let connectionType = 0
        let id: String
        let program: String
        let libraryVersion: Int

        private enum CodingKeys: String, CodingKey {
            case isBlacklisted = "Blacklisted"
            case bundleID = "BundleID"
            case connectionType = "ConnType"
            case id = "ID String"
            case program = "ProgName"
            case libraryVersion = "kLibUSBMuxVersion"
        }
    }

    let listeners: [Listener]

    init(_ listeners: [UInt32: ListenerInfo]) {
        self.listeners = listeners.sorted { $0.key < $1.key }.map { number, program in
            Listener(
                bundleID: program.bundleID,
                id: "\(number)-\(program.name)",
                program: program.name,
                libraryVersion: program.libraryVersion
            )
        }
    }

    private enum CodingKeys: String, CodingKey {
        case listeners = "ListenerList"
    }
}
