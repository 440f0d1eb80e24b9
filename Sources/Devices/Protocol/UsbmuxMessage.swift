import FoundationEssentials

/// One message of usbmuxd's protocol: a header of four little-endian words and what follows it.
package struct UsbmuxMessage: Hashable, Sendable {
    package enum Body: Hashable, Sendable {
        /// Version 1: an XML property list, not looked at yet.
        case propertyList([UInt8])
        /// Version 0: how usbmuxd refuses a version that it does not speak, whatever the version was.
        case result(UsbmuxResult)
    }

    /// Of a reply, that of its request; 0 for what usbmuxd says unasked.
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

/// What is asked of usbmuxd, as the property list that it reads.
struct UsbmuxRequest: Hashable, Sendable, Encodable {
    /// `Listen`, `ListDevices`, `Connect`, `ReadBUID`; what errors call the request.
    let name: String
    private var deviceID: UInt32?
    private var portNumber: UInt16?

    static let listen = UsbmuxRequest(name: "Listen")
    static let listDevices = UsbmuxRequest(name: "ListDevices")
    static let readBUID = UsbmuxRequest(name: "ReadBUID")

    /// The port travels as the integer that its network order makes on this machine: 62078 is 32498 on little-endian ones.
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
        // The version of the protocol's second dialect; without it usbmuxd leaves network devices out.
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

/// The number with which usbmuxd answers a request that has no other answer (usbmuxd-proto.h).
package enum UsbmuxResult: Hashable, Sendable {
    case ok
    /// A request that it does not know, or one with a missing key. netmuxd says this for every Connect that failed.
    case badCommand
    /// No device has that DeviceID; also what each 65,536th Connect to one device gets for no reason of its own.
    case badDevice
    /// Nothing listens on that port of the phone.
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
