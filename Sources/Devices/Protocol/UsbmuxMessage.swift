import FoundationEssentials

/// One message of usbmuxd's protocol: a header of four little-endian words and a body.
package struct UsbmuxMessage: Hashable, Sendable {
    package enum Body: Hashable, Sendable {
        /// Version 1: an XML property list, not yet parsed.
        case propertyList([UInt8])
        /// Version 0: the rejection of an unsupported protocol version.
        case result(UsbmuxResult)
    }

    /// The tag of the request in a reply; 0 in an unsolicited message.
    package let tag: UInt32
    package let body: Body

    package init(tag: UInt32, body: Body) {
        self.tag = tag
        self.body = body
    }

    package var encoded: [UInt8] {
        switch body {
        case .propertyList(let bytes):
            let length = UInt32(UsbmuxHeader.size + bytes.count)
            return UsbmuxHeader(length: length, version: 1, kind: 8, tag: tag).encoded + bytes
        case .result(let result):
            let header = UsbmuxHeader(length: UsbmuxHeader.resultLength, version: 0, kind: 1, tag: tag)
            return header.encoded + UsbmuxHeader.bytes(of: result.code)
        }
    }
}

/// A request to usbmuxd, encoded as the property list that usbmuxd reads.
struct UsbmuxRequest: Hashable, Sendable, Encodable {
    /// The message type: `Listen`, `ListDevices`, `Connect` or `ReadBUID`. Also used in errors.
    let name: String
    private var deviceID: UInt32?
    private var portNumber: UInt16?

    static let listen = UsbmuxRequest(name: "Listen")
    static let listDevices = UsbmuxRequest(name: "ListDevices")
    static let readBUID = UsbmuxRequest(name: "ReadBUID")

    /// The port is sent as an integer in network byte order: 62078 becomes 32498 on little-endian machines.
    static func connect(deviceID: UInt32, port: UInt16) -> UsbmuxRequest {
        UsbmuxRequest(name: "Connect", deviceID: deviceID, portNumber: port.bigEndian)
    }

    private init(name: String, deviceID: UInt32? = nil, portNumber: UInt16? = nil) {
        self.name = name
        self.deviceID = deviceID
        self.portNumber = portNumber
    }

    private enum Keys: String, CodingKey {
        case messageType = "MessageType"
        case clientVersion = "ClientVersionString"
        case program = "ProgName"
        case libraryVersion = "kLibUSBMuxVersion"
        case deviceID = "DeviceID"
        case portNumber = "PortNumber"
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(name, forKey: .messageType)
        try container.encode("patchbay", forKey: .clientVersion)
        try container.encode("patchbay", forKey: .program)
        // The version of the property list protocol. Without it usbmuxd omits network devices.
        try container.encode(3, forKey: .libraryVersion)
        try container.encodeIfPresent(deviceID, forKey: .deviceID)
        try container.encodeIfPresent(portNumber, forKey: .portNumber)
    }

    func message(tag: UInt32) throws -> UsbmuxMessage {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .xml
        return UsbmuxMessage(tag: tag, body: .propertyList(Array(try encoder.encode(self))))
    }
}

/// The result code with which usbmuxd answers a request that has no other reply (usbmuxd-proto.h).
package enum UsbmuxResult: Hashable, Sendable {
    case ok
    /// An unknown request, or a request with a missing key. netmuxd returns this for every failed Connect.
    case badCommand
    /// No device has this DeviceID. usbmuxd also returns this for each 65,536th Connect to one device, without a
    /// reason.
    case badDevice
    /// Nothing listens on this port of the device.
    case refused
    case badVersion
    case other(UInt32)

    package init(code: UInt32) {
        self =
            switch code {
            case 0: .ok
            case 1: .badCommand
            case 2: .badDevice
            case 3: .refused
            case 6: .badVersion
            default: .other(code)
            }
    }

    package var code: UInt32 {
        switch self {
        case .ok: 0
        case .badCommand: 1
        case .badDevice: 2
        case .refused: 3
        case .badVersion: 6
        case .other(let code): code
        }
    }
}

extension UsbmuxResult: CustomStringConvertible {
    package var description: String {
        switch self {
        case .ok: "ok"
        case .badCommand: "\"bad command\" (1)"
        case .badDevice: "\"no such device\" (2)"
        case .refused: "\"connection refused\" (3)"
        case .badVersion: "\"bad version\" (6)"
        case .other(let code): "result \(code)"
        }
    }
}
