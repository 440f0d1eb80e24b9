import Devices
import Model

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
