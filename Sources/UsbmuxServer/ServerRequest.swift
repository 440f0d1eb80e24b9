import Devices
import FoundationEssentials

/// What a client of usbmuxd asks, read as usbmuxd 1.1.1 reads it (`client_command` in client.c).
///
/// It differs where usbmuxd leaves a client without an answer or takes a wrong value for another one: a body that is no
/// XML property list, or has no MessageType, gets "bad command" where usbmuxd says nothing and the client waits for ever;
/// a port that is no port gets the same, where usbmuxd dials its lower 16 bits.
enum UsbmuxServerRequest: Hashable, Sendable {
    case listen(ListenerInfo)
    case listDevices
    case listListeners
    /// The port as people write it.
    case connect(deviceID: UInt32, port: UInt16)
    /// Something that usbmuxd itself must answer: the property list as it came, and the name of the message.
    case foreign([UInt8], name: String)
    /// Something that has no other answer than this.
    case wrong(UsbmuxResult)

    init(_ frame: UsbmuxFrame) {
        guard frame.header.version <= 1 else {
            self = .wrong(.badVersion)
            return
        }
        // The kind decides, not the version, as in usbmuxd.
        switch frame.header.kind {
        case 2 where frame.body.count >= 8:
            // struct usbmuxd_connect_request: the device, and the port in network order.
            let port = UInt16(truncatingIfNeeded: UsbmuxHeader.word(at: 4, of: frame.body))
            self = .connect(deviceID: UsbmuxHeader.word(at: 0, of: frame.body), port: UInt16(bigEndian: port))
        case 3: self = .listen(ListenerInfo(name: "unknown", bundleID: nil, libraryVersion: 0))
        case 8: self = Self.read(frame.body)
        default: self = .wrong(.badCommand)
        }
    }

    private static func read(_ body: [UInt8]) -> UsbmuxServerRequest {
        guard (try? PropertyListValidator.check(body)) != nil,
            let list = try? PropertyListDecoder().decode(RequestList.self, from: Data(body))
        else { return .wrong(.badCommand) }
        switch list.type {
        case "Listen":
            return .listen(
                ListenerInfo(
                    name: list.program ?? "unknown",
                    bundleID: list.bundle,
                    libraryVersion: list.libraryVersion ?? 0
                )
            )
        case "ListDevices": return .listDevices
        case "ListListeners": return .listListeners
        case "Connect":
            guard list.hasDeviceID else { return .wrong(.badDevice) }
            guard let port = list.port.flatMap({ UInt16(exactly: $0) }) else { return .wrong(.badCommand) }
            // A number that no device can have is that of no device.
            let deviceID = list.deviceID.flatMap { UInt32(exactly: $0) } ?? 0
            return .connect(deviceID: deviceID, port: UInt16(bigEndian: port))
        case let name: return .foreign(body, name: name)
        }
    }
}

/// A request as a property list: each key that usbmuxd looks at.
private struct RequestList: Decodable {
    let type: String
    let hasDeviceID: Bool
    let deviceID: Int?
    let port: Int?
    let program: String?
    let bundle: String?
    let libraryVersion: Int?

    private enum Keys: String, CodingKey {
        case type = "MessageType"
        case deviceID = "DeviceID"
        case port = "PortNumber"
        case program = "ProgName"
        case bundle = "BundleID"
        case libraryVersion = "kLibUSBMuxVersion"
    }

    init(from decoder: any Decoder) throws {
        let keys = try decoder.container(keyedBy: Keys.self)
        type = try keys.decode(String.self, forKey: .type)
        hasDeviceID = keys.contains(.deviceID)
        deviceID = try? keys.decode(Int.self, forKey: .deviceID)
        port = try? keys.decode(Int.self, forKey: .port)
        program = try? keys.decode(String.self, forKey: .program)
        bundle = try? keys.decode(String.self, forKey: .bundle)
        libraryVersion = try? keys.decode(Int.self, forKey: .libraryVersion)
    }
}
