import FoundationEssentials
package import Model

/// A message from usbmuxd: a reply or an unsolicited event.
enum UsbmuxReply: Hashable, Sendable {
    case result(UsbmuxResult)
    /// Unusable records are left out, so that one unusual device does not hide the others.
    case devices([UsbmuxDeviceRecord])
    case attached(UsbmuxDeviceRecord)
    case detached(UInt32)
    /// The record of a pairing was saved for the device.
    case paired(UInt32)
    /// A pair record exists. It is a secret of this machine, so its content is not decoded.
    case pairRecord
    /// A message without effect: an attached device that cannot be used, or an unknown type.
    case other(String)

    /// - Throws: `UsbmuxError.malformedMessage` if the body is not a property list or not a known message.
    init(_ message: UsbmuxMessage) throws(UsbmuxError) {
        switch message.body {
        case .result(let result):
            self = .result(result)
        case .propertyList(let bytes):
            try PropertyListValidator.validate(bytes)
            do {
                self = try PropertyListDecoder().decode(UsbmuxReply.self, from: Data(bytes))
            } catch {
                throw .malformedMessage("a property list of an unknown type")
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
        case pairRecord = "PairRecordData"
    }

    /// Decodes a record, or nil if the record is unusable.
    private struct Tolerant: Decodable {
        let record: UsbmuxDeviceRecord?
        init(from decoder: any Decoder) { record = try? UsbmuxDeviceRecord(from: decoder) }
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        // The device list and a pair record have no MessageType and are recognised by their content.
        if let devices = try container.decodeIfPresent([Tolerant].self, forKey: .devices) {
            self = .devices(devices.compactMap(\.record))
            return
        }
        guard !container.contains(.pairRecord) else {
            self = .pairRecord
            return
        }
        let type = try container.decode(String.self, forKey: .messageType)
        switch type {
        case "Result": self = .result(UsbmuxResult(code: try container.decode(UInt32.self, forKey: .number)))
        case "Detached": self = .detached(try container.decode(UInt32.self, forKey: .deviceID))
        case "Paired":
            self = (try? container.decode(UInt32.self, forKey: .deviceID)).map { .paired($0) } ?? .other(type)
        case "Attached": self = (try? UsbmuxDeviceRecord(from: decoder)).map { .attached($0) } ?? .other(type)
        default: self = .other(type)
        }
    }
}

/// One device as listed by one run of usbmuxd.
package struct UsbmuxDeviceRecord: Hashable, Sendable {
    /// Valid only until this usbmuxd ends. The next one counts from 1 again.
    package let deviceID: UInt32
    package let udid: UDID
    package let transport: Device.Transport
    package var productID: Int?
    package var locationID: Int?
}

/// Reads the records of usbmuxd, usbmuxd2, netmuxd and Apple's usbmuxd, which omit different keys.
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
        // Only Apple's usbmuxd sends UDID. All send SerialNumber, which is the UDID without its hyphen.
        let udid = [Properties.udid, .serial, .usbSerial].lazy.compactMap { key in
            (try? inner.decode(String.self, forKey: key)).flatMap { UDID($0) }
        }.first
        // In libusbmuxd, DeviceID 0 marks the end of a list. No device has it.
        guard let deviceID, deviceID != 0, let udid else {
            throw DecodingError.dataCorruptedError(
                forKey: .properties,
                in: outer,
                debugDescription: "a record without DeviceID or UDID"
            )
        }
        // Old versions omit this key and support only USB.
        let transport: Device.Transport
        switch try? inner.decodeIfPresent(String.self, forKey: .transport) {
        case "USB", nil: transport = .usb
        case "Network": transport = .network
        default:
            throw DecodingError.dataCorruptedError(
                forKey: .transport,
                in: inner,
                debugDescription: "an unknown connection type"
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
