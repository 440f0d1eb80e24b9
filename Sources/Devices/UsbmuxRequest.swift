import FoundationEssentials

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
