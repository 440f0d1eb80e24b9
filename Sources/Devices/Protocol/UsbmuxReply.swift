import FoundationEssentials
package import Model

/// What usbmuxd says, asked or unasked.
enum UsbmuxReply: Hashable, Sendable {
    case result(UsbmuxResult)
    /// Records that could not be used are left out, so that one odd device hides no other.
    case devices([UsbmuxDeviceRecord])
    case buid(String)
    case attached(UsbmuxDeviceRecord)
    case detached(UInt32)
    /// Anything that changes nothing: `Paired`, an attached device that cannot be used, a kind not known yet.
    case other(String)

    /// - Throws: `UsbmuxError.garbled` when it is not a property list, or not one of usbmuxd's.
    init(_ message: UsbmuxMessage) throws(UsbmuxError) {
        switch message.body {
        case .result(let result):
            self = .result(result)
        case .propertyList(let bytes):
            try PropertyListValidator.check(bytes)
            do {
                self = try PropertyListDecoder().decode(UsbmuxReply.self, from: Data(bytes))
            } catch {
                throw .garbled("a property list that is none of its answers")
            }
        }
    }
}

extension UsbmuxReply: Decodable {
    private enum Keys: String, CodingKey {
        case messageType = "MessageType"
        case number = "Number"
        case deviceID = "DeviceID"
        case devices = "DeviceList"
        case buid = "BUID"
    }

    /// A record, or nothing where there is none to be had.
    private struct Tolerant: Decodable {
        let record: UsbmuxDeviceRecord?
        init(from decoder: any Decoder) { record = try? UsbmuxDeviceRecord(from: decoder) }
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        // Two answers have no MessageType and are known by what they hold.
        if let devices = try container.decodeIfPresent([Tolerant].self, forKey: .devices) {
            self = .devices(devices.compactMap(\.record))
            return
        }
        if let buid = try container.decodeIfPresent(String.self, forKey: .buid) {
            self = .buid(buid)
            return
        }
        let type = try container.decode(String.self, forKey: .messageType)
        switch type {
        case "Result": self = .result(UsbmuxResult(code: try container.decode(UInt32.self, forKey: .number)))
        case "Detached": self = .detached(try container.decode(UInt32.self, forKey: .deviceID))
        case "Attached": self = (try? UsbmuxDeviceRecord(from: decoder)).map { .attached($0) } ?? .other(type)
        default: self = .other(type)
        }
    }
}

/// One phone as usbmuxd lists it at one moment of one run of usbmuxd.
package struct UsbmuxDeviceRecord: Hashable, Sendable {
    /// Good only until that usbmuxd ends: the next one counts from 1 again.
    package let deviceID: UInt32
    package let udid: UDID
    package let transport: Device.Transport
    package let productID: Int?
    package let locationID: Int?

    package init(
        deviceID: UInt32,
        udid: UDID,
        transport: Device.Transport,
        productID: Int? = nil,
        locationID: Int? = nil
    ) {
        self.deviceID = deviceID
        self.udid = udid
        self.transport = transport
        self.productID = productID
        self.locationID = locationID
    }
}

/// Reads the records of usbmuxd, usbmuxd2, netmuxd and Apple's, which differ in what they leave out.
extension UsbmuxDeviceRecord: Decodable {
    private enum Keys: String, CodingKey {
        case deviceID = "DeviceID"
        case properties = "Properties"
    }

    private enum Properties: String, CodingKey {
        case deviceID = "DeviceID"
        case udid = "UDID"
        case serial = "SerialNumber"
        case usbSerial = "USBSerialNumber"
        case transport = "ConnectionType"
        case productID = "ProductID"
        case locationID = "LocationID"
    }

    package init(from decoder: any Decoder) throws {
        let outer = try decoder.container(keyedBy: Keys.self)
        let inner = try outer.nestedContainer(keyedBy: Properties.self, forKey: .properties)
        let deviceID =
            (try? outer.decode(UInt32.self, forKey: .deviceID)) ?? (try? inner.decode(UInt32.self, forKey: .deviceID))
        // Only Apple's has UDID, and everybody has SerialNumber, which is the same without the hyphen.
        let udid = [Properties.udid, .serial, .usbSerial].lazy.compactMap { key in
            (try? inner.decode(String.self, forKey: key)).flatMap { UDID($0) }
        }.first
        // Zero is the end of a list in libusbmuxd, never a device.
        guard let deviceID, deviceID != 0, let udid else {
            throw DecodingError.dataCorruptedError(
                forKey: .properties,
                in: outer,
                debugDescription: "a record without DeviceID or UDID"
            )
        }
        // Old ones have no such key and know only the cable.
        let transport: Device.Transport
        switch try? inner.decodeIfPresent(String.self, forKey: .transport) {
        case "USB", nil: transport = .usb
        case "Network": transport = .network
        default:
            throw DecodingError.dataCorruptedError(
                forKey: .transport,
                in: inner,
                debugDescription: "a way of attachment that is not known"
            )
        }
        let isCable = transport == .usb
        self.init(
            deviceID: deviceID,
            udid: udid,
            transport: transport,
            productID: isCable ? try? inner.decode(Int.self, forKey: .productID) : nil,
            locationID: isCable ? try? inner.decode(Int.self, forKey: .locationID) : nil
        )
    }
}
