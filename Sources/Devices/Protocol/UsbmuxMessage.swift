import Model

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

/// A request to usbmuxd.
struct UsbmuxRequest: Hashable, Sendable {
    /// The message type: `Listen`, `ListDevices`, `Connect` or `ReadPairRecord`. Also used in errors.
    let name: String
    /// The keys that only this message type has.
    private var keys = ""

    static let listen = UsbmuxRequest(name: "Listen")
    static let listDevices = UsbmuxRequest(name: "ListDevices")

    static func readPairRecord(of udid: UDID) -> UsbmuxRequest {
        UsbmuxRequest(name: "ReadPairRecord", keys: "<key>PairRecordID</key><string>\(udid)</string>")
    }

    /// The port is sent as an integer in network byte order: 62078 becomes 32498 on little-endian machines.
    static func connect(deviceID: UInt32, port: UInt16) -> UsbmuxRequest {
        UsbmuxRequest(
            name: "Connect",
            keys: """
                <key>DeviceID</key><integer>\(deviceID)</integer>
                <key>PortNumber</key><integer>\(port.bigEndian)</integer>
                """
        )
    }

    /// The version of the property list protocol is 3. Without it usbmuxd omits network devices.
    var message: UsbmuxMessage {
        let document = propertyListDocument(
            keys: """
                <key>MessageType</key><string>\(name)</string>
                <key>ClientVersionString</key><string>patchbay</string>
                <key>ProgName</key><string>patchbay</string>
                <key>kLibUSBMuxVersion</key><integer>3</integer>
                \(keys)
                """
        )
        return UsbmuxMessage(tag: UsbmuxConnection.tag, body: .propertyList(document))
    }
}

/// The result code with which usbmuxd answers a request that has no other reply (usbmuxd-proto.h).
package struct UsbmuxResult: Hashable, Sendable {
    package static let ok = UsbmuxResult(code: 0)
    /// An unknown request, or a request with a missing key. netmuxd returns this for every failed Connect.
    package static let badCommand = UsbmuxResult(code: 1)
    /// No device has this DeviceID. usbmuxd also returns this for each 65,536th Connect to one device, without a
    /// reason.
    package static let badDevice = UsbmuxResult(code: 2)
    /// Nothing listens on this port of the device.
    package static let refused = UsbmuxResult(code: 3)
    package static let badVersion = UsbmuxResult(code: 6)

    package let code: UInt32

    package init(code: UInt32) { self.code = code }
}

extension UsbmuxResult: CustomStringConvertible {
    package var description: String {
        switch self {
        case .ok: "ok"
        case .badCommand: "\"bad command\" (1)"
        case .badDevice: "\"no such device\" (2)"
        case .refused: "\"connection refused\" (3)"
        case .badVersion: "\"bad version\" (6)"
        default: "result \(code)"
        }
    }
}
