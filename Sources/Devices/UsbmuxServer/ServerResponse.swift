import FoundationEssentials
import Model

/// A response or an event, in either of usbmuxd's dialects.
enum UsbmuxServerResponse: Hashable, Sendable {
    /// The client's protocol version. Binary until the client sends its first property list.
    enum Dialect: Hashable, Sendable {
        case binary
        case propertyList
    }

    case result(UsbmuxResult)
    case devices([NumberedDevice])
    case listeners([UInt32: ListenerInfo])
    case change(DeviceChange)
    /// usbmuxd's unchanged response.
    case forwarded([UInt8])

    /// Returns the encoded message. `tag` is the request's tag, or 0 for an event. Throws the property list encoder's
    /// errors.
    func encoded(tag: UInt32, in dialect: Dialect) throws -> [UInt8] {
        let list: any Encodable
        switch (self, dialect) {
        case (.result(let result), .binary): return UsbmuxMessage(tag: tag, body: .result(result)).encoded
        case (.change(.attached(let device)), .binary):
            return Self.frame(kind: 4, tag: tag, body: Self.record(of: device))
        case (.change(.detached(let device)), .binary):
            return Self.frame(kind: 5, tag: tag, body: UsbmuxHeader.bytes(of: device.deviceID))
        // The other responses exist as property lists only.
        case (.forwarded(let bytes), _): return UsbmuxMessage(tag: tag, body: .propertyList(bytes)).encoded
        case (.result(let result), .propertyList): list = ResultPlist(result)
        case (.change(.attached(let device)), .propertyList): list = AttachedPlist(device)
        case (.change(.detached(let device)), .propertyList): list = DetachedPlist(device)
        case (.devices(let devices), _): list = DeviceListPlist(devices)
        case (.listeners(let listeners), _): list = ListenerListPlist(listeners)
        }
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .xml
        return UsbmuxMessage(tag: tag, body: .propertyList(Array(try encoder.encode(list)))).encoded
    }

    private static func frame(kind: UInt32, tag: UInt32, body: [UInt8]) -> [UInt8] {
        let length = UInt32(UsbmuxHeader.size + body.count)
        return UsbmuxHeader(length: length, version: 0, kind: kind, tag: tag).encoded + body
    }

    /// struct usbmuxd_device_record: DeviceID, product ID (16 bits), 256 bytes for the UDID, 2 of padding, location ID.
    private static func record(of device: NumberedDevice) -> [UInt8] {
        let serial = Array(device.device.udid.text.utf8)
        let product = UsbmuxHeader.bytes(of: UInt32(truncatingIfNeeded: device.device.productID ?? 0)).prefix(2)
        return UsbmuxHeader.bytes(of: device.deviceID) + product + serial
            + [UInt8](repeating: 0, count: 256 - serial.count + 2)
            + UsbmuxHeader.bytes(of: UInt32(truncatingIfNeeded: device.device.locationID ?? 0))
    }
}

// The property lists of usbmuxd's client.c. The members have the names of the keys.

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
        /// 480 Mbit/s, the value that usbmuxd reports for most devices. Patchbay does not store the real value, and no
        /// client uses it.
        let connectionSpeed = 480_000_000
        let connectionType = "USB"
        let deviceID: UInt32
        let locationID: Int
        let productID: Int
        /// The UDID. The form with 24 digits has a hyphen, as in usbmuxd since 1.1.1.
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

    init(_ device: NumberedDevice) {
        deviceID = device.deviceID
        properties = Properties(
            deviceID: device.deviceID,
            locationID: device.device.locationID ?? 0,
            productID: device.device.productID ?? 0,
            serialNumber: device.device.udid.text
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

    init(_ device: NumberedDevice) { deviceID = device.deviceID }

    private enum CodingKeys: String, CodingKey {
        case messageType = "MessageType"
        case deviceID = "DeviceID"
    }
}

struct DeviceListPlist: Encodable {
    let devices: [AttachedPlist]

    init(_ devices: [NumberedDevice]) { self.devices = devices.map { AttachedPlist($0) } }

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
