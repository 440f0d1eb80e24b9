import FoundationEssentials

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
